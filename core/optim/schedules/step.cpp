// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/optim/schedules/step.hpp"

#include <cmath>

#include "core/base/check.hpp"

namespace carousel {
namespace {

/// Updates from one drop to the next.
std::int64_t interval(double epochs, const TrainingTime& time) {
  const double updates = epochs * static_cast<double>(time.per_epoch);
  if (updates < 0.5)
    fail(ExitCode::usage,
         "train.schedule.step_epochs = {} is less than a training step, of which an epoch has {}; "
         "use train.schedule.step_size",
         epochs, time.per_epoch);
  return std::llround(updates);
}

}  // namespace

std::vector<Row<StepRate>> StepRate::rows() {
  return {key("step_epochs", &StepRate::epochs, above(0, "epochs"),
              "Interval between drops of the learning rate; what is no whole number of training "
              "steps is rounded to one."),
          key("step_size", &StepRate::updates, within(1, 1e12, "training steps"),
              "The same in training steps, as PyTorch's StepLR has it; give either.",
              instead_of("train.schedule.step_epochs")),
          key("gamma", &StepRate::gamma, zero_to_one, "Factor of each drop.")};
}

double StepRate::rate(double base, const TrainingTime& time) const {
  const std::int64_t drops = updates > 0 ? time.step / updates : time.held / interval(epochs, time);
  return base * std::pow(gamma, static_cast<double>(drops));
}

}  // namespace carousel
