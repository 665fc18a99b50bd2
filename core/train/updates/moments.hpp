// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Means of gradients and of their squares, which start from zero and are corrected for that, as
// Adam has them (Kingma & Ba 2015, arXiv 1412.6980).

#include <cmath>
#include <cstdint>

#include "core/train/update.hpp"

namespace carousel {

struct Moments {
  // The mean moves as in torch.lerp, from the end that is closer: all of a share of 1 is exactly
  // the gradient. Which end, a branch per number would keep the kernel from vectors.
  bool from_gradient;
  real share1;  // of the way from there
  real beta2;
  real share2;
  real root_of_correction;  // of v
  real epsilon;
  bool first;
  real* mean;
  real* square;

  Moments(double beta1, double beta2_of_deck, double epsilon_of_deck, const StageUpdate& update)
      : from_gradient(static_cast<real>(1 - beta1) >= real(0.5)),
        share1(static_cast<real>(1 - beta1) - (from_gradient ? 1 : 0)),
        beta2(static_cast<real>(beta2_of_deck)),
        share2(static_cast<real>(1 - beta2_of_deck)),
        root_of_correction(static_cast<real>(
            std::sqrt(1 - std::pow(beta2_of_deck, static_cast<double>(update.step.number + 1))))),
        epsilon(static_cast<real>(epsilon_of_deck)),
        first(update.step.number == 0),
        mean(update.vectors.states),
        square(update.vectors.states + update.vectors.size) {}

  /// Moves both by a gradient; m over the corrected root of v.
  [[nodiscard]] KOKKOS_FUNCTION real move(std::int64_t i, real gradient) const {
    const real m_before = first ? 0 : mean[i];
    const real v_before = first ? 0 : square[i];
    const real m = Kokkos::fma(share1, gradient - m_before, from_gradient ? gradient : m_before);
    const real v = Kokkos::fma(share2, gradient * gradient, beta2 * v_before);
    mean[i] = m;
    square[i] = v;
    return ratio(m, v);
  }
  /// The same of what they are.
  [[nodiscard]] KOKKOS_FUNCTION real ratio(std::int64_t i) const {
    return ratio(mean[i], square[i]);
  }
  [[nodiscard]] KOKKOS_FUNCTION real ratio(real m, real v) const {
    return m / (Kokkos::sqrt(v) / root_of_correction + epsilon);
  }
};

/// What corrects a mean with that share after an update.
[[nodiscard]] inline double mean_correction(double beta1, const StageUpdate& update) {
  return 1 - std::pow(beta1, static_cast<double>(update.step.number + 1));
}

}  // namespace carousel
