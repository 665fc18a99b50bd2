// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/grids.hpp"

#include <algorithm>
#include <utility>

namespace carousel::blocked {
namespace {

/// Calls visit(q, r, s, number) for the taps of a window, in the order of its weights.
template <class Visit>
void for_each_tap(const Window& window, const Visit& visit) {
  int number = 0;
  for (int q = 0; q < window.slices(); ++q) {
    for (int r = 0; r < window.kernel; ++r) {
      for (int s = 0; s < window.kernel; ++s) visit(q, r, s, number++);
    }
  }
}

/// Along one axis, what inputs first, first + stride, ... get: output number o meets input
/// o * stride + tap - padding.
std::vector<Tap> taps_of(const Window& window, int first_z, int first_y, int first_x) {
  std::vector<Tap> taps;
  for_each_tap(window, [&](int q, int r, int s, int number) {
    const int z = first_z + window.padding_slices() - q;
    const int y = first_y + window.padding - r;
    const int x = first_x + window.padding - s;
    if (z % window.stride == 0 && y % window.stride == 0 && x % window.stride == 0)
      taps.push_back({z / window.stride, y / window.stride, x / window.stride, number});
  });
  return taps;
}

}  // namespace

Windows output_windows(const Window& window, const SampleShape& out, int channels) {
  Windows windows;
  windows.step = window.stride;
  windows.d = out.depth;
  windows.h = out.height;
  windows.w = out.width;
  if (channels > 0) {
    windows.pixel = channels;
    windows.depth = window.kernel * channels;
    for_each_tap(window, [&](int q, int r, int s, int number) {
      if (s == 0)
        windows.taps.push_back({q - window.padding_slices(), r - window.padding, -window.padding,
                                number / window.kernel});
    });
    return windows;
  }
  for_each_tap(window, [&](int q, int r, int s, int number) {
    windows.taps.push_back(
        {q - window.padding_slices(), r - window.padding, s - window.padding, number});
  });
  return windows;
}

std::vector<Windows> input_grids(const Window& window, const SampleShape& in) {
  std::vector<Windows> grids;
  const int stride = window.stride;
  const auto left = [&](int size, int first) { return (size - first + stride - 1) / stride; };
  for (int z = 0; z < std::min(stride, in.depth); ++z) {
    for (int y = 0; y < std::min(stride, in.height); ++y) {
      for (int x = 0; x < std::min(stride, in.width); ++x) {
        Windows grid;
        grid.taps = taps_of(window, z, y, x);
        grid.d = left(in.depth, z);
        grid.h = left(in.height, y);
        grid.w = left(in.width, x);
        grid.out_step = stride;
        grid.out_z = z;
        grid.out_y = y;
        grid.out_x = x;
        grids.push_back(std::move(grid));
      }
    }
  }
  return grids;
}

Windows flattened(Windows windows) {
  windows.w *= windows.d * windows.h;
  windows.d = windows.h = 1;
  return windows;
}

}  // namespace carousel::blocked
