// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// torch.optim.lr_scheduler.CosineAnnealingLR over what is left after the warm-up.

#include <cstdint>
#include <vector>

#include "core/deck/row.hpp"
#include "core/optim/training_time.hpp"

namespace carousel {

struct CosineRate {
  static constexpr const char* name = "cosine";
  static constexpr const char* doc = "along half a cosine to the end.";

  double final_factor = 0;  // rate at the end, as a fraction of the peak

  [[nodiscard]] static std::vector<Row<CosineRate>> rows();
  [[nodiscard]] double rate(double base, const TrainingTime& time) const;
};

}  // namespace carousel
