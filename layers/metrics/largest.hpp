// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the largest of some numbers is: the class that a sample is taken for.

#include "layers/stored.hpp"

namespace carousel {

/// The first one of equals, as torch.argmax; of numbers that are all not finite, 0.
template <class Numbers>
[[nodiscard]] KOKKOS_FUNCTION int index_of_largest(const Numbers& values, int count) {
  int best = 0;
  real largest = full(values[0]);
  for (int c = 1; c < count; ++c) {
    const real value = full(values[c]);
    if (!(value > largest)) continue;
    largest = value;
    best = c;
  }
  return best;
}

}  // namespace carousel
