// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The learning rate of a step of a training.

#include <cstdint>

#include "core/train/config.hpp"

namespace carousel {

/// Where steps had another size before, it is the rate that a run which always had this one has in
/// that place, but for keys in steps, which count the steps that were made.
[[nodiscard]] inline double learning_rate(const TrainConfig& train, const Agenda& agenda,
                                          std::int64_t step) {
  return learning_rate(train.schedule, train.optimizer.learning_rate, step + agenda.ahead,
                       agenda.steps_per_epoch, agenda.total_steps + agenda.ahead, agenda.ahead);
}

}  // namespace carousel
