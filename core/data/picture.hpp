// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes the bytes of a JPEG or PNG file, to the numbers that Pillow's convert("RGB") gives. What
// becomes of the pixels is decided elsewhere.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace carousel {

struct PictureSize {
  int height = 0;
  int width = 0;
  bool operator==(const PictureSize&) const = default;
};

/// A picture as it was stored: red, green and blue of each pixel, 0 to 255.
struct Picture {
  static constexpr int channels = 3;
  PictureSize size;
  std::vector<std::uint8_t> pixels;  // [height, width, channels]
};

/// Most pixels of a picture. A few bytes may claim more than any memory holds; Pillow draws the
/// line here, too.
inline constexpr std::int64_t most_pixels = 178'956'970;

struct DecodeOptions {
  /// 1, 2, 4 or 8: a JPEG is decoded to one of that many of its pixels in each direction, rounded
  /// up, which costs less than to decode it as a whole; a PNG is always decoded as a whole.
  int reduction = 1;
  std::optional<PictureSize> expected = {};  // Error(bad_data) where the file has another one
};

/// Greyscale becomes red = green = blue, an alpha channel is dropped. `picture` may hold an earlier
/// one, whose memory is used again. Throws Error(bad_data) with the reason alone, no file's name,
/// for other formats, CMYK, 16 bits per channel, more than most_pixels, and damaged files. Any
/// number of threads may decode at once.
void decode_picture(std::span<const std::byte> file, Picture& picture,
                    const DecodeOptions& options = {});

/// [height, width, channels] to [channels, height, width].
void separate(std::span<const std::uint8_t> pixels, std::size_t channels,
              std::span<std::uint8_t> planes);
inline void separate(const Picture& picture, std::span<std::uint8_t> planes) {
  separate(picture.pixels, Picture::channels, planes);
}
/// The other way; `picture` may hold an earlier one.
void join(std::span<const std::uint8_t> planes, PictureSize size, Picture& picture);

}  // namespace carousel
