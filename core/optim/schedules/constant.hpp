// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The rate of the deck, always.

#include <cstdint>
#include <vector>

#include "core/deck/row.hpp"
#include "core/optim/training_time.hpp"

namespace carousel {

struct ConstantRate {
  static constexpr const char* name = "constant";
  static constexpr const char* doc = "the same all the time.";

  [[nodiscard]] static std::vector<Row<ConstantRate>> rows();
  [[nodiscard]] double rate(double base, const TrainingTime& time) const;
};

}  // namespace carousel
