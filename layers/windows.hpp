// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The windows of a convolution as a factor of layers/gemm.hpp: the matrix that im2col would write
// to memory, one column per window, is packed straight from the image and never exists whole.

#include "core/base/view.hpp"

namespace carousel::detail {

/// Windows over images [n, c, d, h, w]. Window (z, y, x) of a plane meets its image, with tap
/// (q, r, s), at
///   slice  (z * multiply + offset_d + q * step) / divide
///   row    (y * multiply + offset + r * step) / divide
///   column (x * multiply + offset_w + s * step) / divide
/// and finds a zero where the division leaves a rest or the image ends. A convolution has
/// multiply = stride, offset = -padding, step = dilation, divide = 1; its transpose, which the
/// gradient of the input is, has multiply = 1, offset = padding, step = -dilation, divide = stride.
struct Windows {
  const real* data;
  std::int64_t image_stride;
  int d;
  int h;
  int w;
  int planes_d;  // windows of one plane
  int planes_h;
  int planes_w;
  int kernel_d;
  int kernel_h;
  int kernel_w;
  int multiply;
  int offset_d;
  int offset;
  int offset_w;
  int step;
  int divide;

  /// Number `tap`, in the order c, q, r, s, of window number `window`, in the order n, z, y, x.
  [[nodiscard]] KOKKOS_FUNCTION real element(int window, int tap) const {
    const Window at = find_window(window);
    const Tap t = find_tap(tap);
    const real* row = row_of(at, t);
    return row == nullptr ? real(0) : pixel(row, at.x * multiply + offset_w + t.s * step);
  }
  [[nodiscard]] KOKKOS_FUNCTION bool vectors_first() const { return true; }

  /// panel[l][v] = element(v0 + v, k0 + l) for v < count.
  template <int Width>
  KOKKOS_FUNCTION void pack_panel(int v0, int count, int k0, int k, real* panel) const {
    for (int v = 0; v < count;) {  // runs of windows in one row
      const Window at = find_window(v0 + v);
      const int run = Kokkos::min(count - v, planes_w - at.x);
      Tap tap = find_tap(k0);
      const real* row = row_of(at, tap);
      for (int l = 0; l < k; ++l) {
        copy_run<1, Width>(row, at.x * multiply + offset_w + tap.s * step, run,
                           panel + l * Width + v);
        if (next(tap)) row = row_of(at, tap);
      }
      v += run;
    }
  }

  /// panel[l][v] = element(k0 + l, v0 + v) for v < count: the taps are the vectors.
  template <int Width>
  KOKKOS_FUNCTION void pack_taps(int v0, int count, int k0, int k, real* panel) const {
    for (int l = 0; l < k;) {
      const Window at = find_window(k0 + l);
      const int run = Kokkos::min(k - l, planes_w - at.x);
      Tap tap = find_tap(v0);
      const real* row = row_of(at, tap);
      for (int v = 0; v < count; ++v) {
        copy_run<Width, 0>(row, at.x * multiply + offset_w + tap.s * step, run,
                           panel + l * Width + v);
        if (next(tap)) row = row_of(at, tap);
      }
      l += run;
    }
  }

 private:
  struct Window {
    const real* image;
    int z;
    int y;
    int x;
  };
  struct Tap {
    int c;
    int q;
    int r;
    int s;
  };

  [[nodiscard]] KOKKOS_FUNCTION Window find_window(int number) const {
    const int row = number / planes_w;
    const int slice = row / planes_h;
    return {data + slice / planes_d * image_stride, slice % planes_d, row % planes_h,
            number % planes_w};
  }
  [[nodiscard]] KOKKOS_FUNCTION Tap find_tap(int number) const {
    const int row = number / kernel_w;
    const int slice = row / kernel_h;
    return {slice / kernel_d, slice % kernel_d, row % kernel_h, number % kernel_w};
  }
  /// Returns whether the next tap meets another row.
  KOKKOS_FUNCTION bool next(Tap& tap) const {
    if (++tap.s < kernel_w) return false;
    tap.s = 0;
    if (++tap.r < kernel_h) return true;
    tap.r = 0;
    if (++tap.q < kernel_d) return true;
    tap.q = 0;
    ++tap.c;
    return true;
  }

  /// Where a number of the other grid lies, or -1: most divide by 1, which costs no division.
  [[nodiscard]] KOKKOS_FUNCTION int divided(int number) const {
    if (divide == 1 || number < 0) return number;
    return number % divide == 0 ? number / divide : -1;
  }
  /// The row of the image that a tap meets; null outside.
  [[nodiscard]] KOKKOS_FUNCTION const real* row_of(const Window& at, const Tap& tap) const {
    const int z = divided(at.z * multiply + offset_d + tap.q * step);
    const int y = divided(at.y * multiply + offset + tap.r * step);
    if (z < 0 || z >= d || y < 0 || y >= h) return nullptr;
    return at.image + ((std::int64_t{tap.c} * d + z) * h + y) * w;
  }
  [[nodiscard]] KOKKOS_FUNCTION real pixel(const real* row, int number) const {
    const int x = divided(number);
    return x < 0 || x >= w ? real(0) : row[x];
  }

  /// What `run` neighbouring windows find in a row from x on, to every Stride-th number from `to`
  /// on. A run of Whole windows is copied without branches.
  template <int Stride, int Whole>
  KOKKOS_FUNCTION void copy_run(const real* row, int x, int run, real* to) const {
    if (row == nullptr) {
      for (int i = 0; i < run; ++i) to[i * Stride] = 0;
    } else if (multiply != 1 || divide != 1) {
      for (int i = 0; i < run; ++i) to[i * Stride] = pixel(row, x + i * multiply);
    } else if (Whole > 0 && run == Whole) {
      for (int i = 0; i < Whole; ++i)
        to[i * Stride] = static_cast<unsigned>(x + i) < static_cast<unsigned>(w) ? row[x + i] : 0;
    } else {
      const int begin = Kokkos::min(Kokkos::max(-x, 0), run);
      const int end = Kokkos::max(Kokkos::min(w - x, run), begin);
      for (int i = 0; i < begin; ++i) to[i * Stride] = 0;
      for (int i = begin; i < end; ++i) to[i * Stride] = row[x + i];
      for (int i = end; i < run; ++i) to[i * Stride] = 0;
    }
  }
};

/// The same matrix with the taps as vectors and all windows one after the other as k.
struct WindowTaps {
  Windows windows;

  [[nodiscard]] KOKKOS_FUNCTION real element(int tap, int window) const {
    return windows.element(window, tap);
  }
  [[nodiscard]] KOKKOS_FUNCTION bool vectors_first() const { return false; }
  template <int Width>
  KOKKOS_FUNCTION void pack_panel(int v0, int count, int k0, int k, real* panel) const {
    windows.pack_taps<Width>(v0, count, k0, k, panel);
  }
};

}  // namespace carousel::detail
