// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Schedules that tests of the planner share: every variant of a rule and a placement, their lists
// of actions. It tests nothing itself.

#include <fmt/core.h>

#include <string>
#include <vector>

#include "core/plan/schedule.hpp"

namespace carousel::testing {

using Lists = std::vector<std::vector<Action>>;

/// Stages of different sizes, so that mistaken ones show in the bytes.
inline std::vector<std::int64_t> message_bytes(int stages) {
  std::vector<std::int64_t> bytes;
  for (int j = 0; j < stages; ++j) bytes.push_back(64 * (j + 1));
  return bytes;
}

inline ParallelConfig parallel(RuleKind rule, Placement placement, int n, int stages,
                               int slack = 0) {
  ParallelConfig config;
  config.rule = rule;
  config.placement = placement;
  config.micro_batches = n;
  config.stages = stages;
  config.slack = slack;
  return config;
}

inline Schedule schedule_of(const ParallelConfig& config) {
  return Schedule({config, message_bytes(config.stages)});
}

/// All that a deck can ask of this N and S, slack 0 .. S included.
inline std::vector<ParallelConfig> variants(int n, int stages) {
  std::vector<ParallelConfig> all;
  for (Placement placement : {Placement::single, Placement::replicated}) {
    ParallelConfig dp = parallel(RuleKind::dp, placement, n, stages);
    all.push_back(dp);
    if (placement == Placement::single)
      dp.order = Order::accumulate;
    else
      dp.reduction = Reduction::fast;
    all.push_back(dp);
    all.push_back(parallel(RuleKind::cdp_v1, placement, n, stages));
    for (int slack = 0; slack <= stages; ++slack)
      all.push_back(parallel(RuleKind::cdp_v2, placement, n, stages, slack));
  }
  return all;
}

inline std::string describe(const ParallelConfig& config) {
  return fmt::format("{} {} {} {} N = {}, S = {}, slack {}", to_string(config.rule),
                     to_string(config.placement), to_string(config.order),
                     to_string(config.reduction), config.micro_batches, config.stages,
                     config.slack);
}

inline Lists lists_of(const Schedule& schedule, const Segment& segment) {
  Lists lists;
  for (int d = 0; d < schedule.devices(); ++d) lists.push_back(schedule.actions(d, segment));
  return lists;
}

inline bool computes(const Action& action) {
  return action.kind == ActionKind::forward || action.kind == ActionKind::backward;
}

}  // namespace carousel::testing
