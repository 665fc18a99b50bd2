// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// torch.optim.lr_scheduler.StepLR.

#include <cstdint>
#include <vector>

#include "core/deck/row.hpp"
#include "core/optim/training_time.hpp"

namespace carousel {

struct StepRate {
  static constexpr const char* name = "step";
  static constexpr const char* doc = "a drop at regular intervals.";

  double epochs = 30;        // between two drops
  std::int64_t updates = 0;  // the same in updates; counts if not 0
  double gamma = 0.1;        // factor of a drop

  [[nodiscard]] static std::vector<Row<StepRate>> rows();
  [[nodiscard]] double rate(double base, const TrainingTime& time) const;
};

}  // namespace carousel
