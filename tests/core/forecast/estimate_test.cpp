// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What design.md and the paper's table promise of every placement, as closed forms in N, S and R
// beside what schedules, memory plans and simulations of stages of equal size say.

#include "core/forecast/estimate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/base/real.hpp"
#include "core/forecast/routes.hpp"
#include "core/plan/partition.hpp"
#include "tests/core/plan/schedules.hpp"

namespace carousel {
namespace {

using testing::describe;
using testing::parallel;
using testing::variants;

// One unit of activations, parameters and what crosses a cut each.
constexpr std::int64_t unit = 64;

Estimate estimate_of(const ParallelConfig& config, const std::optional<Speeds>& speeds = {}) {
  std::vector<StageMemory> stages(config.stages);
  for (StageMemory& stage : stages) {
    stage.frame_bytes = unit;
    stage.message_size = unit / std::int64_t{sizeof(real)};
    stage.parameter_size = stage.message_size;
  }
  ScheduleSpec spec{config, std::vector<std::int64_t>(config.stages, unit)};
  spec.activation_bytes.assign(config.stages, unit);
  spec.d_activation_bytes.assign(config.stages, unit);
  const Schedule schedule(spec);
  const MemorySpec memory{.input = {1, 1, 1}, .optimizer = {.kind = Sgd{.momentum = 0.9}}};
  return estimate(schedule, plan_memory(memory, stages, schedule), speeds);
}

/// Calls check with the closed forms' letters for every placement, dp by its collectives.
template <class Check>
void for_all(Check&& check) {
  for (int stages = 1; stages <= 6; ++stages) {
    for (int replicas = 1; replicas <= 3; ++replicas) {
      const int n = stages * replicas;
      for (const ParallelConfig& config : variants(n, stages)) {
        SCOPED_TRACE(describe(config));
        check(config, n, stages, replicas);
      }
    }
  }
}

bool cyclic(const ParallelConfig& config) {
  return config.rule != RuleKind::dp;
}

TEST(Estimate, CountsDevices) {
  for_all([](const ParallelConfig& config, int n, int s, int r) {
    int expected = n;
    if (config.placement == Placement::single) expected = 1;
    if (config.placement == Placement::pipeline) expected = s;
    if (config.placement == Placement::model)
      expected = cyclic(config) ? r * s * (s + 1) / 2 : n * s;
    EXPECT_EQ(estimate_of(config).devices, expected);
  });
}

TEST(Estimate, TellsHowBusyDevicesAre) {
  for_all([](const ParallelConfig& config, int n, int s, int) {
    double expected = 1;
    if (config.placement == Placement::model) expected = cyclic(config) ? 2.0 / (s + 1) : 1.0 / s;
    // 1F1B flushes between steps: a bubble of (S - 1) / (N + S - 1).
    if (config.placement == Placement::pipeline && !cyclic(config))
      expected = static_cast<double>(n) / (n + s - 1);
    EXPECT_DOUBLE_EQ(estimate_of(config).busy, expected);
  });
}

TEST(Estimate, FindsActivationsConstantAndAboutHalf) {
  for_all([](const ParallelConfig& config, int n, int s, int r) {
    const Estimate e = estimate_of(config);
    const std::int64_t half = r * s * (s + 1) / 2;  // (S + 1) / (2 S) of N A, with A = S units
    std::int64_t expected = cyclic(config) ? half : std::int64_t{n} * s;
    if (config.order == Order::accumulate) expected = s;
    if (config.placement == Placement::pipeline) expected = s * (s + 1) / 2;
    EXPECT_EQ(e.held, expected * unit);
    std::int64_t largest = s;
    if (config.placement == Placement::model) largest = 1;
    if (config.placement == Placement::single) largest = expected;
    EXPECT_EQ(e.largest[static_cast<std::size_t>(Category::activations)], largest * unit);
  });
}

TEST(Estimate, KeepsOptimizerStateWhereItIsNeeded) {
  for_all([](const ParallelConfig& config, int n, int s, int r) {
    std::int64_t expected = s;
    const bool sharded = cyclic(config) || config.reduction == Reduction::owner;
    if (config.placement == Placement::replicated && !sharded) expected = n * s;
    if (config.placement == Placement::model)
      expected = cyclic(config) ? r * s * (s + 1) / 2 : n * s;
    if (config.placement == Placement::sharded && cyclic(config)) expected = r * s;
    EXPECT_EQ(estimate_of(config).all[static_cast<std::size_t>(Category::optimizer)],
              expected * unit);
  });
}

TEST(Estimate, CountsBytes) {
  for_all([](const ParallelConfig& config, int n, int s, int r) {
    const std::int64_t cuts = 2 * n * (s - 1);  // activations and their gradients
    // Totals of a ring go straight to the owner; the last device owns stage 0 where R = 1.
    const std::int64_t to_owner = r > 1 ? s : s - 1;
    std::int64_t expected = 0;
    switch (config.placement) {
      case Placement::single:
        break;
      case Placement::replicated:
        expected = 2 * (n - 1) * s + (cyclic(config) ? to_owner : 0);
        // With slack it owns that, and the stage which only the last slot reads anew.
        if (cyclic(config) && r == 1 && config.slack > 0 && config.slack < s) --expected;
        break;
      case Placement::pipeline:
        expected = cuts;
        break;
      case Placement::model:
        expected = cuts;
        for (int j = 0; j < s; ++j) {
          const int devices = r * (s - j);
          const bool local = config.reduction == Reduction::local;
          int sums = !cyclic(config) || (devices > 1 && !local) ? n - 1 : devices - 1;
          // A device that runs all slots of a stage adds up what collectives leave there.
          if (cyclic(config) && config.reduction == Reduction::fast && j == s - 1)
            sums = s * (r - 1);
          expected += sums + (cyclic(config) ? devices : n) - 1;
        }
        break;
      case Placement::sharded:
        if (cyclic(config)) {
          // Two copies to all but the owner of each replica; totals to the owners of all replicas.
          const std::int64_t totals = std::int64_t{r} * s - 1;
          expected = 2 * r * (s - 1) * s + (n - 1) * s + totals;
        } else {
          const bool chain = config.reduction == Reduction::ordered;
          expected = 3 * (n - 1) * s + (chain && n > 1 ? to_owner : 0);
        }
    }
    EXPECT_EQ(estimate_of(config).sent.bytes, expected * unit);
  });
}

// `local` reduction moves half of dp's volume of gradients and parameters.
TEST(Estimate, HalvesTheVolumeOfModelWithLocalSums) {
  for (int n = 2; n <= 9; ++n) {
    ParallelConfig dp = parallel(RuleKind::dp, Placement::model, n, n);
    dp.reduction = Reduction::fast;
    ParallelConfig local = parallel(RuleKind::cdp_v2, Placement::model, n, n);
    local.reduction = Reduction::local;
    const std::int64_t cuts = 2LL * n * (n - 1) * unit;
    EXPECT_EQ(2 * (estimate_of(local).sent.bytes - cuts), estimate_of(dp).sent.bytes - cuts);
  }
}

TEST(Estimate, ExposesOneMessageWhereDpExposesARing) {
  for_all([](const ParallelConfig& config, int n, int s, int r) {
    const int longest = estimate_of(config).longest;
    if (config.placement == Placement::single) {
      EXPECT_EQ(longest, 0);
    } else if (config.placement == Placement::pipeline) {
      EXPECT_EQ(longest, s > 1 ? 1 : 0);
    } else if (!cyclic(config)) {
      EXPECT_GE(longest, n > 1 ? n - 1 : 0);
    } else if (r == 1) {
      EXPECT_LE(longest, 1);
    }
  });
}

TEST(Estimate, FindsTheTrafficOfCyclicRulesEven) {
  for (int n = 2; n <= 16; ++n) {
    ParallelConfig config = parallel(RuleKind::dp, Placement::replicated, n, n);
    config.reduction = Reduction::fast;
    // All of dp's bytes are on their way in one of 2 S time steps.
    EXPECT_DOUBLE_EQ(estimate_of(config).unevenness, 2 * n);
    config = parallel(RuleKind::cdp_v2, Placement::replicated, n, n);
    EXPECT_LE(estimate_of(config).unevenness, 1 + 1.2 / n) << n;
  }
}

// The cut is a choice: (S + 1) / (2 S) of dp's activations need stages of equal activations.
TEST(Estimate, HalvesTheActivationsOfResnet50WhenCutByActivations) {
  const SampleShape photograph{3, 224, 224};
  const Model model = build_resnet(50, Stem::imagenet, photograph, 1000);
  for (const Balance balance :
       {Balance::flops, Balance::activations, Balance::parameters, Balance::layers}) {
    ParallelConfig config = parallel(RuleKind::cdp_v2, Placement::single, 8, 8);
    config.balance = balance;
    const std::vector<StageMemory> stages =
        plan_stages(model, partition_model(model, 8, balance), 32);
    const Schedule schedule(schedule_spec(config, stages));
    const MemorySpec memory{.input = photograph, .micro_batch_size = 32};
    const Estimate e = estimate(schedule, plan_memory(memory, stages, schedule), {});
    const double ratio =
        static_cast<double>(e.held) / static_cast<double>(activation_baselines(stages, 8).together);
    config.placement = Placement::replicated;
    const Schedule ring(schedule_spec(config, stages));
    const double unevenness = estimate(ring, plan_memory(memory, stages, ring), {}).unevenness;
    fmt::print(
        "resnet50, N = S = 8, balance = {}: {:.3f} of dp's activations; bytes per time step of a "
        "ring, largest over mean: {:.2f} (dp: 16)\n",
        to_string(balance), ratio, unevenness);
    EXPECT_LT(unevenness, 8);
    EXPECT_LT(ratio, balance == Balance::activations ? 0.60 : 1);
    EXPECT_GT(ratio, 9.0 / 16 - 1e-3);
  }
}

TEST(Estimate, SimulatesWhenThereIsAMachine) {
  const Machine machine{.latency_inside = 0,
                        .bandwidth_inside = 1e9,
                        .latency_between = 0,
                        .bandwidth_between = 1e9,
                        .devices_per_node = 1};
  const Speeds speeds{machine, [](int, const Action& a) { return is_pass(a) ? 1.0 : 0; }};
  EXPECT_FALSE(estimate_of(parallel(RuleKind::cdp_v2, Placement::model, 4, 4)).seconds);
  const Estimate e = estimate_of(parallel(RuleKind::cdp_v2, Placement::model, 4, 4), speeds);
  EXPECT_DOUBLE_EQ(e.seconds->ideal_step, 8);
  EXPECT_NEAR(e.seconds->step, 8, 1e-5);
}

TEST(Routes, FollowTheRingTheDiagonalAndTheOrderOfNeed) {
  for (int n = 2; n <= 6; ++n) {
    for (const RuleKind rule : {RuleKind::cdp_v1, RuleKind::cdp_v2}) {
      const Schedule schedule = testing::schedule_of(parallel(rule, Placement::replicated, n, n));
      std::set<std::pair<int, int>> pairs;
      for (const Route& route : routes_of(schedule)) {
        EXPECT_TRUE(pairs.insert({route.from, route.to}).second);
        const bool ring = route.to == (route.from + 1) % n;
        bool diagonal = false;
        for (int j = 0; j < n; ++j)
          diagonal = diagonal || (route.from == n - 1 && route.to == schedule.owner(j));
        // The owner of v1 begins with device 0, and is left out behind it.
        const bool v1 = rule == RuleKind::cdp_v1;
        const bool beside = v1 && (route.to == 0 || route.to == route.from + 2);
        EXPECT_TRUE(ring || diagonal || beside) << route.from << " to " << route.to;
      }
      EXPECT_EQ(std::ssize(pairs), n + (rule == RuleKind::cdp_v1 ? 3 : 1) * std::max(0, n - 2));
    }
    for (const Route& route :
         routes_of(testing::schedule_of(parallel(RuleKind::cdp_v2, Placement::pipeline, n, n))))
      EXPECT_EQ(std::abs(route.from - route.to), 1);
  }
}

TEST(Routes, ArePrintedWithin80Columns) {
  ParallelConfig config = parallel(RuleKind::dp, Placement::sharded, 4, 4);
  config.reduction = Reduction::fast;
  const Schedule dp = testing::schedule_of(config);
  const Schedule many = testing::schedule_of(parallel(RuleKind::cdp_v2, Placement::model, 9, 9));
  std::string text = to_string(routes_of(dp), dp);
  EXPECT_NE(text.find("broadcast"), std::string::npos);
  EXPECT_NE(text.find("0 .. 3"), std::string::npos);
  text += to_string(routes_of(many), many);
  EXPECT_NE(text.find(" more "), std::string::npos);
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    EXPECT_LE(text.find('\n', at) - at, 80U) << text.substr(at, 100);
  const Schedule alone = testing::schedule_of(parallel(RuleKind::dp, Placement::single, 4, 4));
  EXPECT_EQ(to_string(routes_of(alone), alone), "");
}

}  // namespace
}  // namespace carousel
