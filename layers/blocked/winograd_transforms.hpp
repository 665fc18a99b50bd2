// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The transforms of Winograd's minimal filtering F(4x4, 3x3) (Lavin & Gray 2016, arXiv 1509.09308,
// section 4) with the points 0, 1, -1, 2, -2 and infinity: each along one line of numbers or
// registers. Along both axes of a tile they give Y = A^T ((G g G^T) o (B^T d B)) A. Products are
// exact, by powers of two, or rounded: callers of all kinds get the same bits.

#include "core/model/workspace.hpp"
#include "layers/blocked/lanes.hpp"

namespace carousel::blocked::winograd {

inline constexpr int tile = winograd_tile;          // outputs of a tile along an axis
inline constexpr int patch = 6;                     // inputs that they read
inline constexpr int products = winograd_products;  // numbers of a transformed tile
static_assert(products == patch * patch);

/// B^T d: six inputs.
template <class T>
[[gnu::always_inline]] inline void transform_input(const T (&d)[patch], T (&to)[patch]) {
  const T even = d[4] - real(4) * d[2];
  const T odd = d[3] - real(4) * d[1];
  const T near = d[4] - d[2];
  const T twice = real(2) * (d[3] - d[1]);
  to[0] = d[4] + (real(4) * (d[0] - d[2]) - d[2]);
  to[1] = even + odd;
  to[2] = even - odd;
  to[3] = near + twice;
  to[4] = near - twice;
  to[5] = d[5] + (real(4) * (d[1] - d[3]) - d[3]);
}

/// A^T m: from six products to four outputs.
template <class T>
[[gnu::always_inline]] inline void transform_output(const T (&m)[patch], T (&to)[tile]) {
  const T sum1 = m[1] + m[2];
  const T difference1 = m[1] - m[2];
  const T sum2 = m[3] + m[4];
  const T difference2 = m[3] - m[4];
  to[0] = m[0] + sum1 + sum2;
  to[1] = difference1 + real(2) * difference2;
  to[2] = sum1 + real(4) * sum2;
  to[3] = difference1 + real(8) * difference2 + m[5];
}

/// A d_y: from four gradients of outputs to those of six products.
template <class T>
[[gnu::always_inline]] inline void transform_d_output(const T (&d)[tile], T (&to)[patch]) {
  const T even1 = d[0] + d[2];
  const T odd1 = d[1] + d[3];
  const T even2 = d[0] + real(4) * d[2];
  const T odd2 = real(2) * d[1] + real(8) * d[3];
  to[0] = d[0];
  to[1] = even1 + odd1;
  to[2] = even1 - odd1;
  to[3] = even2 + odd2;
  to[4] = even2 - odd2;
  to[5] = d[3];
}

/// G g: three weights.
template <class T>
[[gnu::always_inline]] inline void transform_weight(const T (&g)[3], T (&to)[patch]) {
  const T ends = rounded<T>((g[0] + g[2]) * real(-1.0 / 6));
  const T middle = rounded<T>(g[1] * real(1.0 / 6));
  const T far = rounded<T>(g[0] * real(1.0 / 24)) + rounded<T>(g[2] * real(1.0 / 6));
  const T half = rounded<T>(g[1] * real(1.0 / 12));
  to[0] = g[0] * real(0.25);
  to[1] = ends - middle;
  to[2] = ends + middle;
  to[3] = far + half;
  to[4] = far - half;
  to[5] = g[2];
}

/// G^T u: from six sums of products to the gradients of three weights.
template <class T>
[[gnu::always_inline]] inline void transform_d_weight(const T (&u)[patch], T (&to)[3]) {
  const T sum1 = rounded<T>((u[1] + u[2]) * real(1.0 / 6));
  const T difference1 = rounded<T>((u[2] - u[1]) * real(1.0 / 6));
  const T sum2 = u[3] + u[4];
  to[0] = u[0] * real(0.25) - sum1 + rounded<T>(sum2 * real(1.0 / 24));
  to[1] = difference1 + rounded<T>((u[3] - u[4]) * real(1.0 / 12));
  to[2] = rounded<T>(sum2 * real(1.0 / 6)) - sum1 + u[5];
}

}  // namespace carousel::blocked::winograd
