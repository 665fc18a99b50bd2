// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a direct convolution reads for its outputs: which taps, where they are, and a copy of the
// rows that they meet, with zeros around the image.

#include <algorithm>
#include <vector>

#include "layers/blocked/segments.hpp"
#include "layers/blocked/tensor.hpp"

namespace carousel::blocked {

/// Output pixel (z, y, x) of a grid meets, at this tap, input pixel (z step + tap.z, y step +
/// tap.y, x step + tap.x).
struct Tap {
  int z;
  int y;
  int x;
  int number;  // among the taps of the weights
};

/// For every pixel of a grid, the numbers that its sum runs over: taps, blocks of channels, and
/// `depth` numbers that lie together. The grid may be every out_step-th pixel of the output.
struct Windows {
  std::vector<Tap> taps;
  int step = 1;  // in the input, from one pixel of the grid to the next
  int d = 1;     // of the grid
  int h = 0;
  int w = 0;
  int out_step = 1;
  int out_z = 0;
  int out_y = 0;
  int out_x = 0;
  int pixel = lanes;  // numbers from one pixel of the input to the next
  int depth = lanes;
};

/// Some rows of some slices of a grid.
struct GridPart {
  Segment slices;
  Segment rows;

  /// The first so many.
  [[nodiscard]] static GridPart first(int slices, int rows) { return {{0, slices}, {0, rows}}; }
};

/// Rows of slices of an input with all columns that the taps meet; beyond the image are zeros.
struct Region {
  int front;  // first slice, may be negative
  int top;    // first row, may be negative
  int left;   // first column, may be negative
  int slices;
  int rows;
  int columns;

  /// What a part of the grid meets.
  Region(const Windows& windows, const GridPart& part) {
    const auto [near, far] = std::ranges::minmax(windows.taps, {}, &Tap::z);
    const auto [up, down] = std::ranges::minmax(windows.taps, {}, &Tap::y);
    const auto [begin, end] = std::ranges::minmax(windows.taps, {}, &Tap::x);
    const int span = (windows.depth + windows.pixel - 1) / windows.pixel;  // columns of a tap
    front = part.slices.first * windows.step + near.z;
    top = part.rows.first * windows.step + up.y;
    left = begin.x;
    slices = (part.slices.size - 1) * windows.step + far.z - near.z + 1;
    rows = (part.rows.size - 1) * windows.step + down.y - up.y + 1;
    columns = (windows.w - 1) * windows.step + end.x - begin.x + span;
  }
  [[nodiscard]] std::int64_t pixels() const { return std::int64_t{slices} * rows * columns; }
  /// Whether an image of so many has all of it.
  [[nodiscard]] bool inside(int d, int h, int w) const {
    return front >= 0 && top >= 0 && left >= 0 && front + slices <= d && top + rows <= h &&
           left + columns <= w;
  }
};

/// Where a sum finds its numbers: in a tensor, or in a copy of a region of it.
template <class Stored>
struct WindowSource {
  const Stored* data;  // of slice `front`, row `top` and column `left`
  int front;
  int top;
  int left;
  std::int64_t slice;  // numbers from one slice to the next
  std::int64_t row;    // from one row to the next
  std::int64_t block;  // from one block of channels to the next

  [[nodiscard]] const Stored* at(const Windows& windows, int z, int y, int x, int b,
                                 const Tap& tap) const {
    return data + b * block + (z * windows.step + tap.z - front) * slice +
           (y * windows.step + tap.y - top) * row +
           (x * windows.step + tap.x - left) * std::int64_t{windows.pixel};
  }
};

/// An activation as the input of windows, read through a source.
template <class Source, class Stored = real>
struct BlockedInput {
  Planes<const Stored> x;
  Source source;

  [[nodiscard]] int images() const { return x.images; }
  [[nodiscard]] int blocks() const { return x.blocks; }
  [[nodiscard]] bool copies(const Windows& windows) const {
    return Source::changes ||
           !Region(windows, GridPart::first(windows.d, windows.h)).inside(x.d, x.h, x.w);
  }
  /// All blocks from `first` on as they lie.
  [[nodiscard]] WindowSource<Stored> direct(int image, int first) const {
    const std::int64_t row = std::int64_t{x.w} * lanes;
    return {x.plane(image, first), 0, 0, 0, x.h * row, row, x.plane_size()};
  }
  /// Copies a region of `count` blocks: [block][slices][rows][columns][lanes].
  WindowSource<Stored> copy(const Region& region, int image, int first, int count,
                            Stored* to) const {
    Stored* next = to;
    for (int b = first; b < first + count; ++b) {
      const auto copy_pixel = [&](std::int64_t pixel) {
        store(next, source(load(x.plane(image, b) + pixel * lanes), b));
        next += lanes;
      };
      const auto leave_out = [&](int pixels) {
        next = std::fill_n(next, pixels * lanes, Stored{});
      };
      for_each_pixel(region, copy_pixel, leave_out);
    }
    const std::int64_t row = std::int64_t{region.columns} * lanes;
    return {to,  region.front,           region.top, region.left, region.rows * row,
            row, region.pixels() * lanes};
  }
  /// The same of an image and the one behind it in pairs, [block][slices][rows][columns][lanes][2];
  /// behind the last image are zeros. For numbers in bf16.
  void copy_pairs(const Region& region, int image, int first, int count, Stored* to) const {
    for (int b = first; b < first + count; ++b) {
      const auto copy_pixel = [&](std::int64_t pixel) {
        copy_pair(image, b, pixel, to);
        to += 2 * lanes;
      };
      const auto leave_out = [&](int pixels) {
        to = std::fill_n(to, 2 * pixels * lanes, Stored{});
      };
      for_each_pixel(region, copy_pixel, leave_out);
    }
  }

  /// Likewise of one pixel of a plane.
  void copy_pair(int image, int block, std::int64_t pixel, Stored* to) const {
    *reinterpret_cast<LoosePairs*>(to) = pair(image, block, pixel);
  }
  [[nodiscard]] Words pair(int image, int block, std::int64_t pixel) const {
    Words words;
    read(words, x.plane(image, block) + pixel * lanes, block);
    Words others = {};
    if (image + 1 < images()) read(others, x.plane(image + 1, block) + pixel * lanes, block);
    return words | others << 16;
  }

 private:
  /// Slice by slice and row by row: calls copy(number of a pixel in its plane), or leave_out(count)
  /// for some beyond the image.
  template <class Copy, class LeaveOut>
  void for_each_pixel(const Region& region, const Copy& copy, const LeaveOut& leave_out) const {
    const int begin = std::clamp(-region.left, 0, region.columns);
    const int end = std::clamp(x.w - region.left, begin, region.columns);
    for (int z = region.front; z < region.front + region.slices; ++z) {
      for (int y = region.top; y < region.top + region.rows; ++y) {
        if (z < 0 || z >= x.d || y < 0 || y >= x.h) {
          leave_out(region.columns);
          continue;
        }
        leave_out(begin);
        const std::int64_t row = (std::int64_t{z} * x.h + y) * x.w + region.left;
        for (int c = begin; c < end; ++c) copy(row + c);
        leave_out(region.columns - end);
      }
    }
  }

  void read(Words& to, const Stored* from, int block) const {
    if constexpr (Source::changes)
      put_halves(to, source(load(from), block));
    else
      widen(to, from);
  }
};

/// Images [n, c, d, h, w] of files as the input of windows. Copies have the channels of a pixel
/// side by side, so that a row of a window is one tap.
struct ImageInput {
  ConstTensor x;

  [[nodiscard]] int images() const { return x.n; }
  [[nodiscard]] static int blocks() { return 1; }
  [[nodiscard]] static bool copies(const Windows& /*windows*/) { return true; }
  [[nodiscard]] WindowSource<real> direct(int /*image*/, int /*first*/) const { return {}; }
  /// [slices][rows][columns][c]
  WindowSource<real> copy(const Region& region, int image, int /*first*/, int /*count*/,
                          real* to) const {
    const SampleShape& shape = x.shape;
    const real* from = x.data + image * shape.size();
    real* next = to;
    for (int r = 0; r < region.slices * region.rows; ++r) {
      const int z = region.front + r / region.rows;
      const int y = region.top + r % region.rows;
      const bool in_row = z >= 0 && z < shape.depth && y >= 0 && y < shape.height;
      for (int c = 0; c < region.columns; ++c) {
        const int column = region.left + c;
        const bool exists = in_row && column >= 0 && column < shape.width;
        for (int k = 0; k < shape.channels; ++k, ++next) {
          const std::int64_t row = (std::int64_t{k} * shape.depth + z) * shape.height + y;
          *next = exists ? from[row * shape.width + column] : real(0);
        }
      }
    }
    const std::int64_t row = std::int64_t{region.columns} * shape.channels;
    return {to, region.front, region.top, region.left, region.rows * row, row, 0};
  }
};

}  // namespace carousel::blocked
