// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/train/updates/by_number.hpp"
#include "core/train/updates/moments.hpp"

namespace carousel {
namespace {

struct AdamWStep {
  Moments moments;
  real keep;           // of a parameter: 1 - rate * decay
  real negative_rate;  // with the correction of the mean

  [[nodiscard]] KOKKOS_FUNCTION real operator()(std::int64_t i, real parameter,
                                                real gradient) const {
    return Kokkos::fma(negative_rate, moments.move(i, gradient), keep * parameter);
  }
};

}  // namespace

void AdamW::update(const StageUpdate& update) const {
  static const std::string label = "carousel::train::adamw_update";
  const double rate = update.step.learning_rate;
  const Moments moments(beta1, beta2, epsilon, update);
  const auto negative_rate = static_cast<real>(-rate / mean_correction(beta1, update));
  update_by_number(label, update, [&](double decay) {
    return AdamWStep{moments, static_cast<real>(1 - rate * decay), negative_rate};
  });
}

}  // namespace carousel
