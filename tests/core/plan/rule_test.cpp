// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The rules against the statement of the paper (Fournier & Oyallon, arXiv 2403.08837), worked out
// from times and not from the closed formulas, for all N and S up to 12.

#include "core/plan/rule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "core/base/check.hpp"

namespace carousel {
namespace {

constexpr int most = 12;

void for_all_sizes(const std::function<void(int n, int stages)>& check) {
  for (int n = 1; n <= most; ++n) {
    for (int stages = 1; stages <= most; ++stages) {
      SCOPED_TRACE(::testing::Message() << "N = " << n << ", S = " << stages);
      check(n, stages);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

/// Start of every micro-batch, by dealing: S slots two time steps apart share N micro-batches.
/// Micro-batch i belongs to the last slot of which at least a whole share has begun.
std::vector<int> dealt_slots(int n, int stages) {
  std::vector<int> slots;
  for (int i = 0; i < n; ++i) {
    int slot = 0;
    while ((slot + 1) * n <= stages * i) ++slot;  // (slot + 1) / S <= i / N, in integers
    slots.push_back(slot);
  }
  return slots;
}

/// When each pass of one stage runs: micro-batches pass the stages up and down again, one stage per
/// time step, and begin their next step at once.
struct Passes {
  std::vector<std::int64_t> forward;   // [step]
  std::vector<std::int64_t> backward;  // [step]
};

Passes walk(std::int64_t start, int stages, int stage, int steps) {
  Passes passes;
  std::int64_t now = start;
  for (int t = 0; t < steps; ++t) {
    for (int j = 0; j < stages; ++j, ++now)
      if (j == stage) passes.forward.push_back(now);
    for (int j = stages - 1; j >= 0; --j, ++now)
      if (j == stage) passes.backward.push_back(now);
  }
  return passes;
}

TEST(Rule, StartsMicroBatchesOneSlotAfterTheOther) {
  for_all_sizes([](int n, int stages) {
    const std::vector<int> slots = dealt_slots(n, stages);
    const Rule dp(RuleKind::dp, n, stages, 0);
    const Rule cyclic(RuleKind::cdp_v2, n, stages, 0);
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(cyclic.slot(i), slots[i]);
      EXPECT_EQ(cyclic.offset(i), 2 * slots[i]);
      EXPECT_EQ(dp.offset(i), 0);
      for (int j = 0; j < stages; ++j) {
        const Passes delayed = walk(2 * slots[i], stages, j, 3);
        const Passes together = walk(0, stages, j, 3);
        for (int t = 0; t < 3; ++t) {
          EXPECT_EQ(cyclic.forward_time(i, j, t), delayed.forward[t]);
          EXPECT_EQ(cyclic.backward_time(i, j, t), delayed.backward[t]);
          EXPECT_EQ(dp.forward_time(i, j, t), together.forward[t]);
          EXPECT_EQ(dp.backward_time(i, j, t), together.backward[t]);
        }
      }
    }
  });
}

TEST(Rule, DealsReplicasEvenly) {
  for (int slots = 1; slots <= most; ++slots) {
    for (int replicas = 1; replicas <= 4; ++replicas) {
      const Rule rule(RuleKind::cdp_v1, slots * replicas, slots, 0);
      for (int i = 0; i < slots * replicas; ++i) EXPECT_EQ(rule.slot(i), i / replicas);
    }
  }
}

/// When theta_{v} of stage j exists: one time step after the last backward of step v - 1.
std::int64_t birth(int n, int stages, int j, int v) {
  std::int64_t complete = 0;
  for (int slot : dealt_slots(n, stages))
    complete = std::max(complete, walk(2 * slot, stages, j, v).backward[v - 1]);
  return complete + 1;
}

TEST(Rule, ReadsTheFreshestVersionThatExistsInTime) {
  for_all_sizes([](int n, int stages) {
    constexpr int t = 3;  // far enough from theta_0 for older versions to show
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < stages; ++j) {
        const std::int64_t use = walk(2 * dealt_slots(n, stages)[i], stages, j, t + 1).forward[t];
        // A reader is never ahead of its own step, and one step of delay is always enough.
        EXPECT_GT(birth(n, stages, j, t + 1), use);
        EXPECT_LE(birth(n, stages, j, t - 1), use);
        for (int slack = 0; slack <= stages; ++slack) {
          // Each unit of slack keeps theta_t on its way for two more time steps.
          const bool in_time = birth(n, stages, j, t) + 2 * slack <= use;
          const Rule rule(RuleKind::cdp_v2, n, stages, slack);
          EXPECT_EQ(rule.version(i, j, t), in_time ? t : t - 1)
              << "micro-batch " << i << ", stage " << j << ", slack " << slack;
          EXPECT_EQ(rule.fresh(i, j), in_time);
        }
      }
    }
  });
}

TEST(Rule, ReadsOneVersionInDpAndTheOneBeforeInV1) {
  for_all_sizes([](int n, int stages) {
    const Rule dp(RuleKind::dp, n, stages, 0);
    const Rule v1(RuleKind::cdp_v1, n, stages, 0);
    const Rule most_slack(RuleKind::cdp_v2, n, stages, stages);
    EXPECT_EQ(dp.versions(), 1);
    EXPECT_EQ(v1.versions(), 2);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < stages; ++j) {
        EXPECT_EQ(dp.version(i, j, 7), 7);
        EXPECT_EQ(v1.version(i, j, 7), 6);
        EXPECT_EQ(v1.version(i, j, 0), -1);
        EXPECT_EQ(most_slack.version(i, j, 7), v1.version(i, j, 7));
      }
    }
  });
}

TEST(Rule, SlackOnlyTakesFreshnessAway) {
  for_all_sizes([](int n, int stages) {
    for (int slack = 0; slack < stages; ++slack) {
      const Rule less(RuleKind::cdp_v2, n, stages, slack);
      const Rule more(RuleKind::cdp_v2, n, stages, slack + 1);
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < stages; ++j) EXPECT_LE(more.fresh(i, j), less.fresh(i, j));
    }
  });
}

TEST(Rule, UsesEveryStageOncePerTimeStep) {
  for (int n = 1; n <= most; ++n) {
    const Rule rule(RuleKind::cdp_v2, n, n, 0);
    std::map<std::int64_t, std::vector<int>> uses;  // time step -> [stage]
    for (int t = 0; t < 4; ++t) {
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
          uses[rule.forward_time(i, j, t)].resize(n);
          uses[rule.backward_time(i, j, t)].resize(n);
          ++uses[rule.forward_time(i, j, t)][j];
          ++uses[rule.backward_time(i, j, t)][j];
        }
      }
    }
    for (std::int64_t time = 2 * n; time < 6 * n; ++time)
      EXPECT_EQ(uses[time], std::vector<int>(n, 1)) << "N = S = " << n << ", time step " << time;
  }
}

TEST(Rule, HoldsEachStageForAFixedNumberOfMicroBatches) {
  for (int n = 1; n <= most; ++n) {
    const Rule rule(RuleKind::cdp_v1, n, n, 0);
    for (std::int64_t time = 2 * n; time < 6 * n; ++time) {
      for (int j = 0; j < n; ++j) {
        int held = 0;
        for (int t = 0; t < 4; ++t)
          for (int i = 0; i < n; ++i)
            held += rule.forward_time(i, j, t) <= time && time <= rule.backward_time(i, j, t);
        EXPECT_EQ(held, n - j) << "N = S = " << n << ", time step " << time << ", stage " << j;
      }
    }
  }
}

TEST(Rule, RefusesSizesThatAreNone) {
  EXPECT_THROW(Rule(RuleKind::dp, 0, 1, 0), Error);
  EXPECT_THROW(Rule(RuleKind::dp, 1, 0, 0), Error);
  EXPECT_THROW(Rule(RuleKind::cdp_v2, 3, 3, 4), Error);
  EXPECT_THROW(Rule(RuleKind::cdp_v2, 3, 3, -1), Error);
}

}  // namespace
}  // namespace carousel
