// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/resize.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"

namespace carousel {
namespace {

constexpr int channels = Picture::channels;
constexpr int weight_bits = 22;
constexpr int half = 1 << (weight_bits - 1);

/// Most weights of `shown` pixels in a line of `largest`, of which each may have a crop of its
/// own. A pixel is a mean over up to 2 scale + 1 pixels where the picture becomes smaller by
/// `scale`, otherwise over up to 3.
std::int64_t most_weights(int largest, int shown) {
  return 2 * (std::int64_t{largest} + shown) + 3 * std::int64_t{shown};
}

/// Halves go up.
int nearest(double value) {
  return static_cast<int>(std::floor(value + 0.5));
}

std::uint8_t to_byte(int sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> weight_bits, 0, 255));
}

}  // namespace

Resizer::Axis::Axis(int largest, int shown)
    : begins(static_cast<std::size_t>(shown)),
      counts(begins.size()),
      weights(static_cast<std::size_t>(most_weights(largest, shown))) {}

/// Plans pixels first .. first + count - 1 of the `all` that [begin, begin + length) becomes.
void Resizer::Axis::plan(double begin, double length, int all, int first, int count) {
  // Whole pixels in front are left out of the arithmetic, so that it is that of a picture cut out.
  const auto base = static_cast<int>(std::floor(begin));
  const double start = begin - base;
  const auto pixels = static_cast<int>(std::ceil(start + length));
  const double scale = length / all;
  const double support = std::max(scale, 1.0);
  const double per_pixel = 1 / support;
  taps = static_cast<int>(std::ceil(support)) * 2 + 1;
  CAROUSEL_CHECK(static_cast<std::size_t>(count) <= begins.size() &&
                     static_cast<std::size_t>(count) * taps <= weights.size(),
                 "{} pixels of {} weights", count, taps);
  low = base + pixels;
  high = base;
  for (int k = 0; k < count; ++k) {
    const int x = first + k;
    counts[k] = 0;
    if (x < 0 || x >= all) continue;
    const double centre = start + (x + 0.5) * scale;
    const int from = std::max(0, nearest(centre - support));
    const int to = std::min(pixels, nearest(centre + support));
    const auto weight = [&](int pixel) {
      return std::max(0.0, 1 - std::abs((pixel - centre + 0.5) * per_pixel));
    };
    double sum = 0;
    for (int pixel = from; pixel < to; ++pixel) sum += weight(pixel);
    int* const chosen = weights.data() + static_cast<std::ptrdiff_t>(k) * taps;
    for (int pixel = from; pixel < to; ++pixel)
      chosen[pixel - from] = nearest(weight(pixel) / sum * (1 << weight_bits));
    begins[k] = base + from;
    counts[k] = to - from;
    low = std::min(low, base + from);
    high = std::max(high, base + to);
  }
  for (int k = 0; k < count; ++k) {
    if (counts[k] == 0) begins[k] = low;
  }
}

Resizer::Resizer(PictureSize largest, PictureSize shown)
    : rows_(largest.height, shown.height),
      columns_(largest.width, shown.width),
      narrow_(static_cast<std::size_t>(std::int64_t{largest.height} * shown.width * channels)),
      sums_(static_cast<std::size_t>(shown.width) * channels) {}

std::int64_t Resizer::bytes(PictureSize largest, PictureSize shown) {
  const auto axis = [](int most, int count) {
    return std::int64_t{sizeof(int)} * (2 * std::int64_t{count} + most_weights(most, count));
  };
  return axis(largest.height, shown.height) + axis(largest.width, shown.width) +
         (std::int64_t{largest.height} + std::int64_t{sizeof(int)}) * shown.width * channels;
}

void Resizer::resize(const Picture& picture, const Box& box, PictureSize size, const Crop& crop,
                     std::span<std::uint8_t> planes) {
  const auto [height, width] = crop.size;
  rows_.plan(box.top, box.height, size.height, crop.top, height);
  columns_.plan(box.left, box.width, size.width, crop.left, width);
  CAROUSEL_CHECK(rows_.high <= picture.size.height && columns_.high <= picture.size.width &&
                     std::ssize(planes) == std::int64_t{channels} * height * width,
                 "a box up to {}, {} of a picture of {} x {}", rows_.high, columns_.high,
                 picture.size.height, picture.size.width);
  const std::ptrdiff_t row = std::ptrdiff_t{channels} * width;
  for (int y = rows_.low; y < rows_.high; ++y) {
    const std::uint8_t* const from =
        picture.pixels.data() + std::ptrdiff_t{y} * picture.size.width * channels;
    std::uint8_t* const to = narrow_.data() + (y - rows_.low) * row;
    for (int x = 0; x < width; ++x) {
      const int* const weights = columns_.weights.data() + std::ptrdiff_t{x} * columns_.taps;
      const std::uint8_t* pixel = from + std::ptrdiff_t{columns_.begins[x]} * channels;
      int red = half;
      int green = half;
      int blue = half;
      for (int k = 0; k < columns_.counts[x]; ++k, pixel += channels) {
        red += pixel[0] * weights[k];
        green += pixel[1] * weights[k];
        blue += pixel[2] * weights[k];
      }
      to[x * channels] = to_byte(red);
      to[x * channels + 1] = to_byte(green);
      to[x * channels + 2] = to_byte(blue);
    }
  }
  const std::ptrdiff_t plane = std::ptrdiff_t{height} * width;
  for (int y = 0; y < height; ++y) {
    const int* const weights = rows_.weights.data() + std::ptrdiff_t{y} * rows_.taps;
    const std::uint8_t* from = narrow_.data() + (rows_.begins[y] - rows_.low) * row;
    std::fill_n(sums_.begin(), row, half);
    for (int k = 0; k < rows_.counts[y]; ++k, from += row) {
      for (std::ptrdiff_t x = 0; x < row; ++x) sums_[x] += from[x] * weights[k];
    }
    std::uint8_t* const to = planes.data() + std::ptrdiff_t{y} * width;
    for (int c = 0; c < channels; ++c) {
      for (int x = 0; x < width; ++x) to[c * plane + x] = to_byte(sums_[x * channels + c]);
    }
  }
}

}  // namespace carousel
