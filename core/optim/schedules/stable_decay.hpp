// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Warm-up, then a rate that stays, then a linear fall at the end (Zhai et al. 2022, arXiv
// 2106.04560; Haegele et al. 2024, arXiv 2405.18392): a run whose end moves keeps all that it has
// learned before the fall.

#include <vector>

#include "core/deck/row.hpp"
#include "core/optim/training_time.hpp"

namespace carousel {

struct StableDecayRate {
  static constexpr const char* name = "warmup-stable-decay";
  static constexpr const char* doc = "the same until it falls linearly at the end.";

  double decay_fraction = 0.1;  // of the training
  double final_factor = 0;      // rate at the end, as a fraction of the peak

  [[nodiscard]] static std::vector<Row<StableDecayRate>> rows();
  [[nodiscard]] double rate(double base, const TrainingTime& time) const;
};

}  // namespace carousel
