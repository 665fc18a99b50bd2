// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// torch.optim.lr_scheduler.MultiStepLR.

#include <cstdint>
#include <vector>

#include "core/deck/row.hpp"
#include "core/optim/training_time.hpp"

namespace carousel {

struct MultistepRate {
  static constexpr const char* name = "multistep";
  static constexpr const char* doc = "drops where milestones say.";

  std::vector<double> milestones = {};             // epochs of the drops
  std::vector<std::int64_t> milestone_steps = {};  // the same in updates; count if there are any
  double gamma = 0.1;                              // factor of a drop

  [[nodiscard]] static std::vector<Row<MultistepRate>> rows();
  void check() const;
  [[nodiscard]] double rate(double base, const TrainingTime& time) const;
};

}  // namespace carousel
