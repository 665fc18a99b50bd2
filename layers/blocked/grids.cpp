// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/grids.hpp"

#include <algorithm>
#include <utility>

namespace carousel::blocked {
namespace {

/// Along one axis, what inputs first, first + stride, ... get: output number o meets input
/// o * stride + tap - padding.
std::vector<Tap> taps_of(const Window& window, int first_y, int first_x) {
  std::vector<Tap> taps;
  for (int r = 0; r < window.kernel; ++r) {
    for (int s = 0; s < window.kernel; ++s) {
      const int y = first_y + window.padding - r;
      const int x = first_x + window.padding - s;
      if (y % window.stride == 0 && x % window.stride == 0)
        taps.push_back({y / window.stride, x / window.stride, r * window.kernel + s});
    }
  }
  return taps;
}

}  // namespace

Windows output_windows(const Window& window, const SampleShape& out, int channels) {
  Windows windows;
  windows.step = window.stride;
  windows.h = out.height;
  windows.w = out.width;
  if (channels > 0) {
    windows.pixel = channels;
    windows.depth = window.kernel * channels;
    for (int r = 0; r < window.kernel; ++r)
      windows.taps.push_back({r - window.padding, -window.padding, r});
    return windows;
  }
  for (int r = 0; r < window.kernel; ++r) {
    for (int s = 0; s < window.kernel; ++s)
      windows.taps.push_back({r - window.padding, s - window.padding, r * window.kernel + s});
  }
  return windows;
}

std::vector<Windows> input_grids(const Window& window, const SampleShape& in) {
  std::vector<Windows> grids;
  for (int y = 0; y < std::min(window.stride, in.height); ++y) {
    for (int x = 0; x < std::min(window.stride, in.width); ++x) {
      Windows grid;
      grid.taps = taps_of(window, y, x);
      grid.h = (in.height - y + window.stride - 1) / window.stride;
      grid.w = (in.width - x + window.stride - 1) / window.stride;
      grid.out_step = window.stride;
      grid.out_y = y;
      grid.out_x = x;
      grids.push_back(std::move(grid));
    }
  }
  return grids;
}

Windows flattened(Windows windows) {
  windows.w *= windows.h;
  windows.h = 1;
  return windows;
}

}  // namespace carousel::blocked
