// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// An update in the units that learning-rate schedules count in.

#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/base/check.hpp"

namespace carousel {

struct TrainingTime {
  std::int64_t step = 0;   // of the run: what keys in training steps count
  std::int64_t held = 0;   // in updates of the present size; stands still where a rate is held
  std::int64_t total = 1;  // such updates of the whole run
  std::int64_t per_epoch = 1;
  double warmup = 0;       // updates of the linear rise before, which are over
  bool in_epochs = false;  // the rate changes only between epochs
};

/// What key `name` of a deck says in epochs, in whole updates. Throws Error(usage) where it is less
/// than one of them, which another key, `in_steps`, could say.
[[nodiscard]] inline std::int64_t whole_updates(double epochs, const TrainingTime& time,
                                                const char* name, const char* in_steps) {
  const double updates = epochs * static_cast<double>(time.per_epoch);
  if (updates < 0.5)
    fail(ExitCode::usage, "{} = {} is less than a training step, of which an epoch has {}; use {}",
         name, epochs, time.per_epoch, in_steps);
  return std::llround(updates);
}

/// From `first` at fraction 0 to `last` at fraction 1 along half a cosine.
[[nodiscard]] inline double anneal(double first, double last, double fraction) {
  return last + (first - last) / 2 * (1 + std::cos(std::numbers::pi * fraction));
}

}  // namespace carousel
