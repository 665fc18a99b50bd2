// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sums over the pixels of one channel that measures of errors are made of.

#include "core/base/view.hpp"
#include "layers/stored.hpp"

namespace carousel {

struct MomentSums {
  double square = 0;  // of errors
  double target = 0;
  double target_square = 0;
  double count = 0;
};

/// Of what is no gap. The vector lanes of a thread work together.
template <class Stored>
[[nodiscard]] KOKKOS_FUNCTION MomentSums moments_of(const Team& team, const Stored* outputs,
                                                    const real* targets, std::int64_t pixels) {
  MomentSums sums;
  Kokkos::parallel_reduce(
      Kokkos::ThreadVectorRange(team, pixels),
      [&](std::int64_t p, double& square, double& target, double& target_square, double& count) {
        const double y = targets[p];
        if (Kokkos::isnan(y)) return;
        const double error = full(outputs[p]) - y;
        square += error * error;
        target += y;
        target_square += y * y;
        count += 1;
      },
      sums.square, sums.target, sums.target_square, sums.count);
  return sums;
}

}  // namespace carousel
