// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// torch.optim.lr_scheduler.OneCycleLR with two phases, cosine. Its peak is the rate of the deck.

#include <cstdint>
#include <vector>

#include "core/deck/row.hpp"
#include "core/optim/training_time.hpp"

namespace carousel {

struct OneCycleRate {
  static constexpr const char* name = "one-cycle";
  static constexpr const char* doc = "a rise to the highest and a fall to the end.";
  static constexpr bool has_own_warmup = true;

  double peak_fraction = 0.3;   // of the run that rises
  double initial_divisor = 25;  // peak / rate of the first update
  double final_divisor = 1e4;   // first / last rate

  [[nodiscard]] static std::vector<Row<OneCycleRate>> rows();
  [[nodiscard]] double rate(double base, const TrainingTime& time) const;
};

}  // namespace carousel
