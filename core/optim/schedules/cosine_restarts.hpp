// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// SGDR (Loshchilov & Hutter 2017), torch.optim.lr_scheduler.CosineAnnealingWarmRestarts, after the
// warm-up. A period that is no whole number of updates is rounded to one.

#include <cstdint>
#include <vector>

#include "core/deck/row.hpp"
#include "core/optim/training_time.hpp"

namespace carousel {

struct CosineRestartsRate {
  static constexpr const char* name = "cosine-restarts";
  static constexpr const char* doc = "along half a cosine, again and again.";

  double period_epochs = 10;       // the first period
  std::int64_t period_steps = 0;   // the same in updates; counts if not 0
  std::int64_t period_factor = 1;  // of each period to the one before
  double final_factor = 0;         // rate that a period falls to, as a fraction of the peak

  [[nodiscard]] static std::vector<Row<CosineRestartsRate>> rows();
  [[nodiscard]] double rate(double base, const TrainingTime& time) const;
};

}  // namespace carousel
