// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes the bytes of a JPEG or PNG file, to the numbers that Pillow's convert("RGB") gives. What
// becomes of the pixels is decided elsewhere.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace carousel {

/// A picture as it was stored: red, green and blue of each pixel, 0 to 255.
struct Picture {
  int height = 0;
  int width = 0;
  std::vector<std::uint8_t> pixels;  // [height, width, 3]
};

/// Most pixels of a picture. A few bytes may claim more than any memory holds; Pillow draws the
/// line here, too.
inline constexpr std::int64_t most_pixels = 178'956'970;

/// Greyscale becomes red = green = blue, an alpha channel is dropped. `picture` may hold an earlier
/// one, whose memory is used again. Throws Error(bad_data) with the reason alone, no file's name,
/// for other formats, CMYK, 16 bits per channel, more than most_pixels, and damaged files. Any
/// number of threads may decode at once.
void decode_picture(std::span<const std::byte> file, Picture& picture);

}  // namespace carousel
