// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// `[train.schedule]`: the learning rate as a pure function of the update index, with PyTorch's
// formulas. It holds no state, so that a resumed run, any rank and any placement get the same
// numbers. Each kind is a struct of its own.

#include <cstdint>
#include <variant>
#include <vector>

#include "core/optim/schedules/constant.hpp"
#include "core/optim/schedules/cosine.hpp"
#include "core/optim/schedules/cosine_restarts.hpp"
#include "core/optim/schedules/multistep.hpp"
#include "core/optim/schedules/one_cycle.hpp"
#include "core/optim/schedules/stable_decay.hpp"
#include "core/optim/schedules/step.hpp"

namespace carousel {

/// Every kind; the first one is the standard.
using RateSchedule = std::variant<ConstantRate, StepRate, MultistepRate, CosineRate,
                                  CosineRestartsRate, OneCycleRate, StableDecayRate>;

struct LearningRateConfig {
  RateSchedule kind = {};
  double warmup_epochs = 0;       // linear, from warmup_factor * rate to rate
  std::int64_t warmup_steps = 0;  // the same in updates; counts if not 0
  double warmup_factor = 0;
  bool per_epoch = false;  // the rate changes only between epochs

  [[nodiscard]] static std::vector<Row<LearningRateConfig>> rows();
  [[nodiscard]] std::vector<NoEffect> without_effect() const;
  /// Error(usage) for values that contradict each other.
  void check() const;
};

/// The rate of update `t` of `total_steps`; `base` is the rate of the deck. Milestones and steps
/// count from the start of the run, in whole updates; others see what is left after the warm-up.
/// Keys in steps count t - ahead, where `ahead` is negative if steps were smaller before, and know
/// nothing of epochs. Throws Error(usage) for a warm-up with a schedule that has its own, and for
/// drops or periods in less than an update.
[[nodiscard]] double learning_rate(const LearningRateConfig& config, double base, std::int64_t t,
                                   std::int64_t steps_per_epoch, std::int64_t total_steps,
                                   std::int64_t ahead = 0);

}  // namespace carousel
