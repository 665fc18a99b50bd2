// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One function per placement: what one device does in one training step, and the gradient buffers
// it needs. Used by Schedule alone.

#include <vector>

#include "core/plan/action.hpp"
#include "core/plan/rule.hpp"
#include "core/plan/schedule.hpp"

namespace carousel::placements {

/// The actions of one device and the gradient buffers they name.
struct DevicePeriod {
  std::vector<Action> actions;
  std::vector<std::vector<int>> gradients;  // [buffer] stages
};

/// All micro-batches on one device.
[[nodiscard]] DevicePeriod single(const Rule& rule, const ScheduleSpec& spec);

/// Micro-batch i on device i, cyclic rules: partial sums go from i to i + 1, totals from N - 1 to
/// the stage's owner, new parameters from the owner around the ring.
[[nodiscard]] DevicePeriod replicated_cyclic(const Rule& rule, const ScheduleSpec& spec,
                                             const std::vector<int>& owner, int device);

/// Micro-batch i on device i, dp: every device updates. Ordered: partial sums from i to i + 1, the
/// total from N - 1 around to all. Fast: one all-reduce at the end of the step.
[[nodiscard]] DevicePeriod replicated_dp(const Rule& rule, const ScheduleSpec& spec, int device);

}  // namespace carousel::placements
