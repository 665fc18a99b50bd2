// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a number of a tensor in plain order is.

#include <cstdint>

#include "core/base/view.hpp"

namespace carousel {

/// A pixel of one channel of one image, which is plane number `plane` of a tensor.
struct Pixel {
  std::int64_t plane;
  int z;
  int y;
  int x;

  /// Number i of planes [d, h, w].
  KOKKOS_FUNCTION Pixel(std::int64_t i, int d, int h, int w)
      : plane(i / w / h / d),
        z(static_cast<int>(i / w / h % d)),
        y(static_cast<int>(i / w % h)),
        x(static_cast<int>(i % w)) {}
};

}  // namespace carousel
