// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/optim/schedules/cosine.hpp"

#include <algorithm>

namespace carousel {

std::vector<Row<CosineRate>> CosineRate::rows() {
  return {key("final_factor", &CosineRate::final_factor, zero_to_one,
              "Learning rate at the end, as a fraction of the highest.")};
}

double CosineRate::rate(double base, const TrainingTime& time) const {
  // A warm-up in steps ends where it ends: in the middle of an epoch, or at another update than
  // one of the present size.
  const auto now = static_cast<double>(time.held);
  const auto total = static_cast<double>(time.total);
  const double part = total > time.warmup ? (now - time.warmup) / (total - time.warmup) : 1;
  return anneal(base, final_factor * base, std::clamp(part, 0.0, 1.0));
}

}  // namespace carousel
