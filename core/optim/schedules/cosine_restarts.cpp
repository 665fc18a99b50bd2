// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/optim/schedules/cosine_restarts.hpp"

#include <algorithm>
#include <cmath>

namespace carousel {

std::vector<Row<CosineRestartsRate>> CosineRestartsRate::rows() {
  return {
      key("period_epochs", &CosineRestartsRate::period_epochs, above(0, "epochs"),
          "From the end of the warm-up to the first restart, which takes the learning rate to "
          "its highest; what is no whole number of training steps is rounded to one."),
      key("period_steps", &CosineRestartsRate::period_steps, within(1, 1e12, "training steps"),
          "The same in training steps; give either.", instead_of("train.schedule.period_epochs")),
      key("period_factor", &CosineRestartsRate::period_factor, within(1, 1000),
          "Each period divided by the one before."),
      key("final_factor", &CosineRestartsRate::final_factor, zero_to_one,
          "What each period falls to, as a fraction of the highest.")};
}

double CosineRestartsRate::rate(double base, const TrainingTime& time) const {
  const bool in_steps = period_steps > 0;
  std::int64_t period = in_steps
                            ? period_steps
                            : whole_updates(period_epochs, time, "train.schedule.period_epochs",
                                            "train.schedule.period_steps");
  // The first update after the warm-up has the highest rate: 0.07 epochs of 100 updates are
  // 7.000000000000001 in doubles, and 7. A warm-up in updates of another size may not be over.
  constexpr double rounding = 1e-12;
  const auto start = static_cast<std::int64_t>(std::ceil(time.warmup * (1 - rounding)));
  std::int64_t since = std::max<std::int64_t>((in_steps ? time.step : time.held) - start, 0);
  if (period_factor == 1) since %= period;
  for (; since >= period; period *= period_factor) since -= period;
  return anneal(base, final_factor * base,
                static_cast<double>(since) / static_cast<double>(period));
}

}  // namespace carousel
