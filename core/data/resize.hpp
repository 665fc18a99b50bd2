// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Resizes pictures as Pillow does with BILINEAR, which torchvision calls antialiased: where a
// picture becomes smaller, a pixel is a mean over all that it stands for, weighted by a triangle.
// Along rows first, then along columns, with weights of 22 bits, each time rounded to 8 bits.

#include <cstdint>
#include <span>
#include <vector>

#include "core/data/augment.hpp"
#include "core/data/picture.hpp"

namespace carousel {

class Resizer {
 public:
  /// Allocates all it needs for crops of up to `shown` of pictures of up to `largest` pixels in
  /// each direction.
  Resizer(PictureSize largest, PictureSize shown);
  /// Bytes held.
  [[nodiscard]] static std::int64_t bytes(PictureSize largest, PictureSize shown);

  /// Resizes `box` of a picture to `size` and writes `crop` of that, [channels, height, width];
  /// zeros where the crop lies outside. Pixels outside of the box count for nothing, as if it had
  /// been cut out before.
  void resize(const Picture& picture, const Box& box, PictureSize size, const Crop& crop,
              std::span<std::uint8_t> planes);

 private:
  /// Of the pixels along one direction: which ones of the picture each is a mean of, and how.
  struct Axis {
    Axis(int largest, int shown);
    void plan(double begin, double length, int all, int first, int count);

    std::vector<int> begins;   // [shown]
    std::vector<int> counts;   // [shown]; 0: outside
    std::vector<int> weights;  // [shown, taps]
    int taps = 0;              // from the weights of one pixel to the next one's
    int low = 0;               // first pixel of the picture that any needs
    int high = 0;              // behind the last one
  };

  Axis rows_;
  Axis columns_;
  std::vector<std::uint8_t> narrow_;  // [rows of the picture, shown width, channels]
  std::vector<int> sums_;             // [shown width, channels]
};

}  // namespace carousel
