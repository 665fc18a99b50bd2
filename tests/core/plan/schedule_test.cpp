// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Schedules of all rules and placements: the checker accepts them, and what the design promises of
// them holds on the lists themselves. Messages have a file of their own.

#include "core/plan/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/proof/checker.hpp"
#include "tests/core/plan/schedules.hpp"

namespace carousel {
namespace {

using testing::all_variants;
using testing::describe;
using testing::Lists;
using testing::lists_of;
using testing::parallel;
using testing::schedule_of;
using testing::variants;

constexpr RuleKind cyclic_rules[] = {RuleKind::cdp_v1, RuleKind::cdp_v2};

void expect_accepted(const Schedule& schedule, const Segment& segment) {
  const auto fault = check_actions(schedule, segment, lists_of(schedule, segment));
  EXPECT_FALSE(fault.has_value()) << describe(schedule.parallel()) << ", steps " << segment.first
                                  << " to " << segment.last << ": " << fault->text;
}

TEST(Schedule, IsAcceptedByTheChecker) {
  for (int n = 1; n <= 9; ++n) {
    for (int stages = 1; stages <= 9; ++stages) {
      for (const ParallelConfig& config : variants(n, stages)) {
        for (const bool norms : {false, true}) {
          if (norms && config.rule != RuleKind::dp) continue;
          const Schedule schedule = schedule_of(config, norms);
          for (std::int64_t first : {0, 5})
            for (std::int64_t steps :
                 {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, schedule.reach() + 4})
              expect_accepted(schedule, {first, first + steps});
          check_schedule(schedule);
          ASSERT_FALSE(HasFailure());
        }
      }
    }
  }
}

TEST(Schedule, IsAcceptedByTheCheckerInPasses) {
  for (int workers = 1; workers <= 6; ++workers) {
    for (int passes = 2; passes <= 6; ++passes) {
      for (int stages = 1; stages <= 6; ++stages) {
        for (const ParallelConfig& config : all_variants(workers * passes, stages, passes)) {
          const bool norms = config.rule == RuleKind::dp && stages % 2 == 0;
          const bool rounds = stages % 3 == 0 && devices_of(config) > 1;
          check_schedule(schedule_of(config, norms, rounds));
          ASSERT_FALSE(HasFailure()) << describe(config);
        }
      }
    }
  }
}

// Where pieces travel inside slots, the times of sums and new parameters depend on S and k.
TEST(Schedule, IsAcceptedByTheCheckerInPassesOfLargeSlots) {
  for (int stages = 2; stages <= 8; ++stages) {
    for (const int passes : {2, 3, 4, 6, 8, 16}) {
      for (const ParallelConfig& config : all_variants(2 * stages * passes, stages, passes)) {
        if (!config.shards || config.rule == RuleKind::dp) continue;
        if (config.chunks > 1 || config.slack % 3 > 1) continue;
        check_schedule(schedule_of(config));
        ASSERT_FALSE(HasFailure()) << describe(config);
      }
    }
  }
}

TEST(Schedule, IsAcceptedByTheCheckerWithPrediction) {
  int plans = 0;
  for (int workers = 1; workers <= 6; ++workers) {
    for (const int passes : {1, 2, 3}) {
      for (int stages = 1; stages <= 6; ++stages) {
        for (ParallelConfig config : all_variants(workers * passes, stages, passes)) {
          if (config.rule == RuleKind::dp || !has_prediction(config)) continue;
          config.predict = 1;
          const bool rounds = stages % 3 == 0 && devices_of(config) > 1;
          const auto fault = find_fault(schedule_of(config, false, rounds));
          ASSERT_FALSE(fault.has_value()) << describe(config) << ": " << fault->text;
          ++plans;
        }
      }
    }
  }
  EXPECT_GT(plans, 1000);
}

TEST(Schedule, IsAcceptedByTheCheckerWhenLarge) {
  for (const PlacementKind& kind : placement_kinds())
    for (RuleKind rule : {RuleKind::dp, RuleKind::cdp_v1, RuleKind::cdp_v2})
      check_schedule(schedule_of(parallel(rule, kind.placement, 64, 64), rule == RuleKind::dp));
}

TEST(Schedule, HasTheDevicesOfItsPlacement) {
  for (int n = 1; n <= 9; ++n) {
    for (int stages = 1; stages <= 9; ++stages) {
      for (const ParallelConfig& config : all_variants(n, stages))
        ASSERT_EQ(schedule_of(config).devices(), devices_of(config)) << describe(config);
    }
  }
}

TEST(Schedule, RunsEveryPassOnceAtTheTimeOfTheRule) {
  for (int n = 1; n <= 6; ++n) {
    for (int stages = 1; stages <= 6; ++stages) {
      std::vector<ParallelConfig> configs = variants(n, stages);
      for (const int passes : {2, 3}) {
        if (n % passes != 0) continue;
        const std::vector<ParallelConfig> more = all_variants(n, stages, passes);
        configs.insert(configs.end(), more.begin(), more.end());
      }
      for (const ParallelConfig& config : configs) {
        const Schedule schedule = schedule_of(config);
        const Rule& rule = schedule.rule();
        std::set<std::tuple<bool, int, int, std::int64_t>> seen;
        for (const std::vector<Action>& list : lists_of(schedule, {5, 8})) {
          EXPECT_TRUE(std::ranges::is_sorted(list, {}, &Action::time)) << describe(config);
          for (const Action& a : list) {
            if (!is_pass(a)) continue;
            const bool forward = a.kind == ActionKind::forward;
            EXPECT_TRUE(seen.insert({forward, a.micro_batch, a.stage, a.step}).second);
            EXPECT_EQ(a.version, rule.version(a.micro_batch, a.stage, a.step));
            if (config.order == Order::accumulate) continue;  // one after the other, by choice
            if (config.passes > 1 && schedule.traits().one_device) continue;  // likewise
            if (config.placement == Placement::pipeline) continue;  // has a pace of its own
            const std::int64_t t = a.step - 5;  // a segment begins at time step 0
            EXPECT_EQ(a.time, forward ? rule.forward_time(a.micro_batch, a.stage, t)
                                      : rule.backward_time(a.micro_batch, a.stage, t));
          }
        }
        EXPECT_EQ(seen.size(), 2U * n * stages * 3) << describe(config);
      }
    }
  }
}

/// Largest number of micro-batches that hold a stage at one time step, from the times of the rule.
int held_at_once(const Rule& rule, int stage) {
  int most = 0;
  for (std::int64_t time = 0; time < 8 * rule.stages(); ++time) {
    int held = 0;
    for (std::int64_t t = 0; t < 4; ++t)
      for (int i = 0; i < rule.micro_batches(); ++i)
        held += rule.forward_time(i, stage, t) <= time && time <= rule.backward_time(i, stage, t);
    most = std::max(most, held);
  }
  return most;
}

// Design, section 2: in the steady state every stage is used by exactly one slot at every time
// step.
TEST(Schedule, LetsOneSlotUseEachStageAtATime) {
  for (int stages = 1; stages <= 6; ++stages) {
    for (int replicas = 1; replicas <= 3; ++replicas) {
      for (const ParallelConfig& config : testing::variants(replicas * stages, stages)) {
        if (config.rule == RuleKind::dp) continue;
        const Schedule schedule = schedule_of(config);
        const std::int64_t period = schedule.period_time();
        std::vector<std::vector<std::vector<int>>> slots(
            period, std::vector<std::vector<int>>(stages));  // [time step][stage]
        for (const std::vector<Action>& list : schedule.lists({0, 5})) {
          for (const Action& a : list) {
            if (is_pass(a) && a.time >= 2 * period && a.time < 3 * period)
              slots[a.time - 2 * period][a.stage].push_back(a.micro_batch / replicas);
          }
        }
        // A pipeline takes the micro-batches of a slot one after the other.
        const int at_once = config.placement == Placement::pipeline ? 1 : replicas;
        for (const auto& stage : slots) {
          for (const std::vector<int>& users : stage)
            EXPECT_EQ(users, std::vector<int>(at_once, users.empty() ? -1 : users.front()))
                << describe(config);
        }
      }
    }
  }
}

TEST(Schedule, HasNoMoreFramesThanMicroBatchesHoldAStage) {
  for (int n = 1; n <= 9; ++n) {
    for (int stages = 1; stages <= 9; ++stages) {
      for (const ParallelConfig& config : variants(n, stages)) {
        const Schedule schedule = schedule_of(config);
        for (int d = 0; d < schedule.devices(); ++d) {
          const BufferCounts& counts = schedule.buffers(d);
          for (int j = 0; j < stages; ++j) {
            const bool all =
                config.placement == Placement::single && config.order == Order::together;
            int expected = all ? held_at_once(schedule.rule(), j) : 1;
            if (config.placement == Placement::pipeline) expected = std::min(n, stages - j);
            // Gaps between the micro-batches leave fewer of them on the way.
            const bool gaps = config.placement == Placement::pipeline && n < stages &&
                              config.rule != RuleKind::dp;
            if (gaps) expected = held_at_once(schedule.rule(), j);
            if (j < counts.first_stage || j > counts.last_stage) expected = 0;
            EXPECT_EQ(counts.frames[j], expected)
                << describe(config) << ", device " << d << ", stage " << j;
          }
        }
      }
    }
  }
}

TEST(Schedule, UsesExactlyNMinusJFramesInTurnOnOneDevice) {
  for (int n = 1; n <= 9; ++n) {
    for (RuleKind rule : cyclic_rules) {
      const Schedule schedule = schedule_of(parallel(rule, Placement::single, n, n));
      std::map<int, int> forwards;  // stage -> forwards so far
      for (const Action& a : schedule.actions(0, {0, 6})) {
        if (a.kind != ActionKind::forward) continue;
        EXPECT_EQ(a.buffer, forwards[a.stage]++ % (n - a.stage));
      }
      for (int j = 0; j < n; ++j) EXPECT_EQ(schedule.buffers(0).frames[j], n - j);
    }
  }
}

TEST(Schedule, HoldsAFewGradientBuffersOnARing) {
  for (int n = 2; n <= 9; ++n) {
    for (RuleKind rule : cyclic_rules) {
      const Schedule schedule = schedule_of(parallel(rule, Placement::replicated, n, n));
      for (int d = 0; d < n; ++d) {
        std::set<int> own;
        std::set<int> arriving;
        std::set<int> returning;
        for (const Action& a : schedule.actions(d, {0, 6})) {
          if (a.kind == ActionKind::backward) own.insert(a.buffer);
          if (a.kind != ActionKind::post) continue;
          if (a.payload == Payload::gradient) arriving.insert(a.buffer);
          if (a.payload == Payload::total) returning.insert(a.buffer);
        }
        EXPECT_EQ(own.size(), 2U);
        EXPECT_EQ(arriving.size(), d == 0 ? 0U : 2U);
        EXPECT_EQ(returning.size(), d == n - 1 ? 0U : 1U);
        EXPECT_EQ(schedule.buffers(d).gradients.size(),
                  own.size() + arriving.size() + returning.size());
      }
    }
  }
}

/// Devices that update a stage: all that compute its gradients in `model` and for dp, otherwise one
/// of each replica that keeps parameters of its own.
int updating_devices(const ParallelConfig& config, int stage) {
  const int n = config.micro_batches;
  const bool cyclic = config.rule != RuleKind::dp;
  switch (config.placement) {
    case Placement::single:
    case Placement::pipeline:
      return 1;
    case Placement::replicated:
      return cyclic || config.reduction == Reduction::owner ? 1 : n;
    case Placement::model:
      return cyclic ? n / config.stages * (config.stages - stage) : n;
    case Placement::sharded:
      return cyclic ? n / config.stages : 1;
  }
  return 0;
}

TEST(Schedule, KeepsOptimizerStateOnOneDevicePerStage) {
  for (int n = 1; n <= 9; ++n) {
    for (int stages = 1; stages <= 9; ++stages) {
      for (const ParallelConfig& config : variants(n, stages)) {
        const Schedule schedule = schedule_of(config);
        const Lists lists = lists_of(schedule, {3, 4});
        for (int j = 0; j < stages; ++j) {
          int updating = 0;
          for (int d = 0; d < schedule.devices(); ++d) {
            const auto updates = std::ranges::count_if(lists[d], [&](const Action& a) {
              return a.kind == ActionKind::update && a.stage == j;
            });
            EXPECT_EQ(updates, schedule.buffers(d).optimizer[j] ? 1 : 0) << describe(config);
            updating += static_cast<int>(updates);
          }
          EXPECT_EQ(updating, updating_devices(config, j)) << describe(config);
          const bool mirrored =
              config.placement == Placement::replicated || config.placement == Placement::sharded;
          if (mirrored && n == stages) {
            const bool waits = config.placement == Placement::replicated && config.slack <= j;
            EXPECT_EQ(schedule.owner(j), n - 1 - j + (waits ? config.slack : 0));
          }
        }
      }
    }
  }
}

TEST(Schedule, HasAsManyRequestsAsAreEverPending) {
  for (int n = 1; n <= 6; ++n) {
    for (int stages = 1; stages <= 6; ++stages) {
      for (const ParallelConfig& config : all_variants(n, stages)) {
        const Schedule schedule = schedule_of(config);
        const Lists lists = lists_of(schedule, {0, schedule.reach() + 8});
        std::map<const Program*, int> most;  // devices of a team have as many as any of them needs
        for (int d = 0; d < schedule.devices(); ++d) {
          int pending = 0;
          int& most_here = most[&schedule.program(d)];
          for (const Action& a : lists[d]) {
            if (a.kind == ActionKind::wait) --pending;
            if (starts_message(a)) ++pending;
            most_here = std::max(most_here, pending);
          }
          EXPECT_EQ(pending, 0);
        }
        for (int d = 0; d < schedule.devices(); ++d)
          EXPECT_EQ(schedule.buffers(d).requests,
                    std::max(most[&schedule.program(d)], schedule.devices()))
              << describe(config) << ", device " << d;
      }
    }
  }
}

/// What a run computes, in the order of each stage; buffers and times belong to one segment.
using Work = std::tuple<int, ActionKind, std::int64_t, int, std::int64_t>;

std::vector<Work> work_of(const Schedule& schedule, int device,
                          const std::vector<Segment>& segments) {
  std::vector<Work> work;
  for (const Segment& segment : segments) {
    for (const Action& a : schedule.actions(device, segment)) {
      if (is_pass(a) || a.kind == ActionKind::accumulate || a.kind == ActionKind::update)
        work.emplace_back(a.stage, a.kind, a.step, a.micro_batch, a.version);
    }
  }
  const auto stage_and_kind = [](const Work& w) {
    return std::tuple(std::get<0>(w), std::get<1>(w));
  };
  std::ranges::stable_sort(work, {}, stage_and_kind);
  return work;
}

TEST(Schedule, ComputesTheSameWhereverSegmentsEnd) {
  for (int n = 1; n <= 6; ++n) {
    for (int stages = 1; stages <= 6; ++stages) {
      for (const ParallelConfig& config : all_variants(n, stages)) {
        const Schedule schedule = schedule_of(config);
        for (int d = 0; d < schedule.devices(); ++d) {
          const std::vector<Work> whole = work_of(schedule, d, {{0, 5}});
          for (std::int64_t cut = 1; cut < 5; ++cut)
            EXPECT_EQ(work_of(schedule, d, {{0, cut}, {cut, 5}}), whole) << describe(config);
        }
      }
    }
  }
}

}  // namespace
}  // namespace carousel
