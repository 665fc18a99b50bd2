// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/optim/schedules/one_cycle.hpp"

#include <algorithm>
#include <cmath>

namespace carousel {

std::vector<Row<OneCycleRate>> OneCycleRate::rows() {
  return {key("peak_fraction", &OneCycleRate::peak_fraction,
              Allowed{.min = 0, .max = 1, .open_min = true, .open_max = true},
              "Share of the training during which the learning rate rises."),
          key("initial_divisor", &OneCycleRate::initial_divisor, at_least(1),
              "Highest learning rate divided by the first."),
          key("final_divisor", &OneCycleRate::final_divisor, at_least(1),
              "First learning rate divided by the last.")};
}

double OneCycleRate::rate(double base, const TrainingTime& time) const {
  const auto per_epoch = static_cast<double>(time.per_epoch);
  const auto held = static_cast<double>(time.held);
  const auto updates = static_cast<double>(time.total);
  const double now = time.in_epochs ? held / per_epoch : held;
  const double total = time.in_epochs ? std::ceil(updates / per_epoch) : updates;

  const double initial = base / initial_divisor;
  const double turn = peak_fraction * total - 1;
  const double end = total - 1;
  if (now <= turn) return anneal(initial, base, turn > 0 ? now / turn : 1);
  const double fall = end > turn ? (now - turn) / (end - turn) : 1;
  return anneal(base, initial / final_divisor, std::min(fall, 1.0));
}

}  // namespace carousel
