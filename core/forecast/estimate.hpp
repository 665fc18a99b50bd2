// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What one plan costs, in the numbers by which plans are compared: devices, memory, messages and,
// for a known machine, seconds. It reads schedule, memory plan and simulation and decides nothing.

#include <cstdint>
#include <numeric>
#include <optional>

#include "core/base/category.hpp"
#include "core/forecast/forecast.hpp"
#include "core/plan/memory_plan.hpp"
#include "core/plan/schedule.hpp"

namespace carousel {

struct Estimate {
  ParallelConfig parallel;
  int devices = 0;
  double busy = 0;             // fraction of the time steps in which a device computes
  std::int64_t fullest = 0;    // bytes of the device that has most in all
  CategoryBytes largest = {};  // [category] bytes on the device that has most of it
  CategoryBytes all = {};      // [category] bytes on all devices
  std::int64_t held = 0;       // most bytes of activations in use at once on all devices together
  Traffic sent = {};           // per training step by all devices, collectives included
  int longest = 0;             // messages one after the other between two computing time steps
  double unevenness = 0;       // bytes on their way in a time step, largest over mean
  std::optional<Exposure> seconds = {};  // per training step

  /// Bytes on all devices.
  [[nodiscard]] std::int64_t total() const {
    return std::accumulate(all.begin(), all.end(), std::int64_t{0});
  }
};

/// Most bytes of activations in use at once on all devices, at the pace of the rule.
[[nodiscard]] std::int64_t held_at_once(const Schedule& schedule,
                                        const std::vector<StageMemory>& stages);

/// A message is on its way, evenly, in the time steps between its send and the wait for it; where
/// there are none, in the one that has to wait. Without `speeds` there are no seconds. Collectives
/// count as in routes.hpp.
[[nodiscard]] Estimate estimate(const Schedule& schedule, const MemoryPlan& memory,
                                const std::optional<Speeds>& speeds);

}  // namespace carousel
