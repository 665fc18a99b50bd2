// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/optim/schedules/stable_decay.hpp"

#include <algorithm>

namespace carousel {

std::vector<Row<StableDecayRate>> StableDecayRate::rows() {
  return {key("decay_fraction", &StableDecayRate::decay_fraction,
              Allowed{.min = 0, .max = 1, .open_min = true},
              "Share of the training, at its end, during which the learning rate falls."),
          key("final_factor", &StableDecayRate::final_factor, zero_to_one,
              "Learning rate at the end, as a fraction of the highest.")};
}

double StableDecayRate::rate(double base, const TrainingTime& time) const {
  const auto total = static_cast<double>(time.total);
  const double left = total - static_cast<double>(time.held);
  const double part = 1 - std::clamp(left / (decay_fraction * total), 0.0, 1.0);
  return base * (1 + (final_factor - 1) * part);
}

}  // namespace carousel
