// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/placements/hand_on.hpp"

#include <algorithm>

namespace carousel::placements {

HandOn::HandOn(const Rule& rule, int stage, int owner, std::int64_t ready, std::int64_t early)
    : owner_(owner), devices_(rule.micro_batches()) {
  const auto needed = [&](int device) {
    return std::max(ready, first_use(rule, device, stage) - early);
  };
  int reader = 0;
  for (int h = 1; h < devices_; ++h) {
    if (first_use(rule, device(h), stage) < first_use(rule, device(reader), stage)) reader = h;
  }
  const std::int64_t deadline = needed(device(reader));
  const int diagonal = owner == devices_ - 1 ? 0 : 1;
  const std::int64_t messages = reader + diagonal;
  for (int h = 0; h < devices_; ++h) {
    const std::int64_t message = h + diagonal;  // that brings it, counted from 1
    const std::int64_t share = messages == 0 ? 0 : (deadline - ready) * message / messages;
    std::int64_t time = h <= reader ? ready + share : needed(device(h));
    if (h <= reader && message > 0 && rule.slack() == rule.stages())
      time = reader == 0 && rule.stages() > 1 ? std::max(ready + 1, deadline - 1)
                                              : std::max(time, deadline - (reader - h));
    times_.push_back(time);
  }
}

}  // namespace carousel::placements
