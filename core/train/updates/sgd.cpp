// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Factors are those that PyTorch hands to its kernels: computed in double, rounded once.

#include "core/train/updates/by_number.hpp"

namespace carousel {
namespace {

struct SgdStep {
  real negative_rate;
  real momentum;
  real gradient_share;  // of the momentum buffer: 1 - dampening
  real weight_decay;
  bool nesterov;
  bool first;
  real* buffer;

  SgdStep(const Sgd& sgd, const StageUpdate& update, double decay)
      : negative_rate(static_cast<real>(-update.step.learning_rate)),
        momentum(static_cast<real>(sgd.momentum)),
        gradient_share(static_cast<real>(1 - sgd.dampening)),
        weight_decay(static_cast<real>(decay)),
        nesterov(sgd.nesterov),
        first(update.step.number == 0),
        buffer(update.vectors.states) {}

  [[nodiscard]] KOKKOS_FUNCTION real operator()(std::int64_t i, real parameter,
                                                real gradient) const {
    real direction = gradient;
    if (weight_decay != 0) direction = Kokkos::fma(weight_decay, parameter, direction);
    if (momentum != 0) {
      const real velocity =
          first ? direction : Kokkos::fma(gradient_share, direction, momentum * buffer[i]);
      buffer[i] = velocity;
      direction = nesterov ? Kokkos::fma(momentum, velocity, direction) : velocity;
    }
    return Kokkos::fma(negative_rate, direction, parameter);
  }
};

}  // namespace

void Sgd::update(const StageUpdate& update) const {
  static const std::string label = "carousel::train::sgd_update";
  update_by_number(label, update, [&](double decay) { return SgdStep(*this, update, decay); });
}

}  // namespace carousel
