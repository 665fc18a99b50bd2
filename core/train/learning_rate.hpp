// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Learning-rate schedules with PyTorch's formulas, as a pure function of the update index. It holds
// no state, so that a resumed run, any rank and any placement get the same numbers.

#include <cstdint>

#include "core/train/config.hpp"

namespace carousel {

/// The rate of update `t` of `total_steps`; `base` is the rate of the deck, the peak of one_cycle.
/// Milestones and steps count from the start of the run, in whole updates; cosine anneals over what
/// is left after the warm-up. Keys in steps count t - ahead, where `ahead` is negative if steps
/// were smaller before, and know nothing of epochs. Throws Error(usage) for a warm-up with
/// one_cycle, which has its own, and for drops in less than an update.
[[nodiscard]] double learning_rate(const LearningRateConfig& config, double base, std::int64_t t,
                                   std::int64_t steps_per_epoch, std::int64_t total_steps,
                                   std::int64_t ahead = 0);
/// The same for a step of a training; where steps had another size before, it is the rate that a
/// run which always had this one has in that place, but for keys in steps, which count the steps
/// that were made.
[[nodiscard]] double learning_rate(const TrainConfig& train, const Agenda& agenda,
                                   std::int64_t step);

}  // namespace carousel
