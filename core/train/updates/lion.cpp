// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/train/updates/by_number.hpp"

namespace carousel {
namespace {

struct LionStep {
  real rate;
  real keep;  // of a parameter: 1 - rate * decay
  real beta1;
  real share1;
  real beta2;
  real share2;
  bool first;
  real* mean;

  [[nodiscard]] KOKKOS_FUNCTION real operator()(std::int64_t i, real parameter,
                                                real gradient) const {
    const real m = first ? 0 : mean[i];
    const real direction = Kokkos::fma(share1, gradient, beta1 * m);
    mean[i] = Kokkos::fma(share2, gradient, beta2 * m);
    // The sign; that of what is not a number is that.
    const real sign = direction > 0 ? 1 : direction < 0 ? -1 : direction;
    return Kokkos::fma(-rate, sign, keep * parameter);
  }
};

}  // namespace

void Lion::update(const StageUpdate& update) const {
  static const std::string label = "carousel::train::lion_update";
  const double rate = update.step.learning_rate;
  update_by_number(label, update, [&](double decay) {
    return LionStep{.rate = static_cast<real>(rate),
                    .keep = static_cast<real>(1 - rate * decay),
                    .beta1 = static_cast<real>(beta1),
                    .share1 = static_cast<real>(1 - beta1),
                    .beta2 = static_cast<real>(beta2),
                    .share2 = static_cast<real>(1 - beta2),
                    .first = update.step.number == 0,
                    .mean = update.vectors.states};
  });
}

}  // namespace carousel
