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
      EXPECT_EQ(cyclic.slot_of(i), slots[i]);
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
      for (int i = 0; i < slots * replicas; ++i) EXPECT_EQ(rule.slot_of(i), i / replicas);
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

/// The pass in which micro-batch i comes up to a stage, of a worker that begins k passes of 2 S
/// time steps each anew at once.
std::int64_t forward_in_pass(const Rule& rule, int i, int j, std::int64_t t) {
  const int k = rule.passes();
  const std::int64_t passes = t * k + i % k;
  return rule.offset(i / k) +
         walk(0, rule.stages(), j, static_cast<int>(passes) + 1).forward[passes];
}

TEST(Rule, ReadsTheFreshestVersionThatExistsInTimeInEveryPass) {
  constexpr int t = 2;
  for (int workers = 1; workers <= 6; ++workers) {
    for (int k = 1; k <= 6; ++k) {
      for (int stages = 1; stages <= 6; ++stages) {
        for (int slack = 0; slack <= stages * k; ++slack) {
          const Rule rule(RuleKind::cdp_v2, workers * k, stages, slack, false, k);
          int fresh = 0;
          for (int j = 0; j < stages; ++j) {
            // theta_t is there behind the last backward of step t - 1, that of any micro-batch.
            std::int64_t birth = 0;
            for (int i = 0; i < workers * k; ++i) {
              const std::int64_t back = forward_in_pass(rule, i, 0, t - 1) + 2 * stages - 1 - j;
              EXPECT_EQ(rule.backward_time(i, j, t - 1), back);
              birth = std::max(birth, back + 1);
            }
            for (int i = 0; i < workers * k; ++i) {
              const std::int64_t use = forward_in_pass(rule, i, j, t);
              EXPECT_EQ(rule.forward_time(i, j, t), use);
              EXPECT_EQ(rule.fresh(i, j), birth + 2 * slack <= use)
                  << "k = " << k << ", S = " << stages << ", micro-batch " << i << ", slack "
                  << slack;
              // With fresh passes behind others, and always in time one step later.
              EXPECT_LE(birth, rule.forward_time(i, j, t + 1));
              EXPECT_EQ(rule.fresh(i, j), i >= rule.first_fresh(i / k, j));
              fresh += rule.fresh(i, j) ? 1 : 0;
            }
          }
          EXPECT_EQ(rule.always_stale(), fresh == 0);
        }
      }
    }
  }
}

// The paper's constant memory: at every time step each stage is used by one of N / k = S workers.
TEST(Rule, LetsOneWorkerUseEachStageAtATimeInPasses) {
  for (int stages = 1; stages <= 8; ++stages) {
    for (int k = 1; k <= 12; ++k) {
      const Rule rule(RuleKind::cdp_v1, stages * k, stages, 0, false, k);
      EXPECT_EQ(rule.offset(0), 0);
      EXPECT_LT(rule.offset(stages - 1), rule.period());
      std::vector<std::vector<int>> uses(rule.period(), std::vector<int>(stages));
      for (int i = 0; i < stages * k; ++i) {
        if (i >= k && i % k == 0) {
          EXPECT_GT(rule.offset(i / k), rule.offset(i / k - 1));
          EXPECT_LE(std::abs(rule.offset(i / k) - rule.offset(i / k - 1) - 2 * k), 4);
        }
        for (int j = 0; j < stages; ++j) {
          ++uses[rule.forward_time(i, j, 1) % rule.period()][j];
          ++uses[rule.backward_time(i, j, 1) % rule.period()][j];
        }
      }
      for (const std::vector<int>& of : uses) EXPECT_EQ(of, std::vector<int>(stages, 1));
    }
  }
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
  EXPECT_THROW(Rule(RuleKind::cdp_v2, 6, 3, 7, false, 2), Error);
  EXPECT_THROW(Rule(RuleKind::cdp_v2, 6, 3, 0, false, 4), Error);
  EXPECT_THROW(Rule(RuleKind::cdp_v2, 3, 3, -1), Error);
}

}  // namespace
}  // namespace carousel
