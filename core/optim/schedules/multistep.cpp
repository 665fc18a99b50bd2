// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/optim/schedules/multistep.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/base/check.hpp"

namespace carousel {
namespace {

void check_rising(const char* key, const auto& milestones) {
  if (std::ranges::adjacent_find(milestones, std::greater_equal<>()) != milestones.end())
    fail(ExitCode::usage, "{} must be in rising order", key);
}

std::ptrdiff_t reached(const MultistepRate& rate, const TrainingTime& time) {
  if (!rate.milestone_steps.empty())
    return std::ranges::count_if(rate.milestone_steps,
                                 [&](std::int64_t at) { return at <= time.step; });
  // 0.07 epochs of 100 updates are 7.000000000000001 in doubles, and 7.
  constexpr double rounding = 1e-12;
  const double now = static_cast<double>(time.held) * (1 + rounding);
  return std::ranges::count_if(rate.milestones, [&](double epochs) {
    return epochs * static_cast<double>(time.per_epoch) <= now;
  });
}

}  // namespace

std::vector<Row<MultistepRate>> MultistepRate::rows() {
  return {key("milestones", &MultistepRate::milestones, above(0, "epochs"),
              "When the learning rate drops, in rising order; inside of a training step, it drops "
              "behind it.",
              optional_key),
          key("milestone_steps", &MultistepRate::milestone_steps, within(1, 1e12, "training steps"),
              "The same in training steps; give either.", instead_of("train.schedule.milestones")),
          key("gamma", &MultistepRate::gamma, zero_to_one, "Factor of each drop.")};
}

void MultistepRate::check() const {
  if (milestones.empty() && milestone_steps.empty())
    fail(ExitCode::usage, "train.schedule.milestones or train.schedule.milestone_steps is missing");
  check_rising("train.schedule.milestones", milestones);
  check_rising("train.schedule.milestone_steps", milestone_steps);
}

double MultistepRate::rate(double base, const TrainingTime& time) const {
  return base * std::pow(gamma, static_cast<double>(reached(*this, time)));
}

}  // namespace carousel
