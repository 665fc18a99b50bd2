// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/optim/schedules/step.hpp"

#include <cmath>

namespace carousel {

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
  const std::int64_t drops =
      updates > 0 ? time.step / updates
                  : time.held / whole_updates(epochs, time, "train.schedule.step_epochs",
                                              "train.schedule.step_size");
  return base * std::pow(gamma, static_cast<double>(drops));
}

}  // namespace carousel
