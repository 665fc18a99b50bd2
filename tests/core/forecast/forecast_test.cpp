// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// One steady training step over time, beside what is known of it.

#include "core/forecast/forecast.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "core/forecast/routes.hpp"
#include "tests/core/plan/schedules.hpp"

namespace carousel {
namespace {

using testing::describe;
using testing::parallel;
using testing::schedule_of;

constexpr std::int64_t unit = 64;

std::vector<StageMemory> equal_stages(int stages) {
  std::vector<StageMemory> all(stages);
  for (StageMemory& stage : all) stage.frame_bytes = unit;
  return all;
}

Speeds speeds(double bandwidth) {
  return {{.bandwidth_inside = bandwidth, .bandwidth_between = bandwidth},
          [](int, const Action& action) { return is_pass(action) ? 1.0 : 0; }};
}

Forecast forecast_of(const ParallelConfig& config, double bandwidth) {
  return forecast(schedule_of(config), equal_stages(config.stages), speeds(bandwidth));
}

TEST(Forecast, FindsCyclicRulesBusyAndTheirActivationsConstant) {
  for (const Placement placement : {Placement::replicated, Placement::sharded}) {
    const Forecast found = forecast_of(parallel(RuleKind::cdp_v2, placement, 4, 4), 1e12);
    EXPECT_NEAR(found.seconds.step, 8, 1e-6);
    ASSERT_EQ(found.bins.count, 8);
    EXPECT_NEAR(found.bins.width, 1, 1e-6);
    for (const double fraction : found.computing) EXPECT_NEAR(fraction, 1, 1e-6);
    // (S + 1) / 2 of dp's 16, give or take a frame that changes hands within a bin.
    for (const std::int64_t bytes : found.activations) {
      EXPECT_GE(bytes, 10 * unit);
      EXPECT_LE(bytes, 12 * unit);
    }
  }
}

TEST(Forecast, FindsTheBubbleOf1F1B) {
  const Forecast found = forecast_of(parallel(RuleKind::dp, Placement::pipeline, 4, 3), 1e12);
  EXPECT_NEAR(found.seconds.step, 12, 1e-6);
  for (const double fraction : found.computing) EXPECT_NEAR(fraction, 4.0 / 6, 1e-6);
}

// What links carry in a steady step are all the messages of a step, wherever it begins.
TEST(Forecast, FindsEveryByteOnSomeLink) {
  for (const ParallelConfig& config : testing::variants(4, 4)) {
    // Its teams take turns, and one step is not like the next.
    if (config.placement == Placement::model && config.rule != RuleKind::dp) continue;
    const Schedule schedule = schedule_of(config);
    const Forecast found = forecast_of(config, 1e5);
    double carried = 0;
    for (const LinkLoad& link : found.links) {
      EXPECT_EQ(std::ssize(link.bytes), found.bins.count);
      carried += std::accumulate(link.bytes.begin(), link.bytes.end(), 0.0);
    }
    const auto sent = static_cast<double>(sum_of(routes_of(schedule)).bytes);
    // Give or take what crosses the edges of a step that is steady to a thousandth.
    const bool cuts = traits_of(config.placement).splits_stages;
    const double edge = cuts ? static_cast<double>(schedule.spec().d_activation_bytes[2]) : 0;
    EXPECT_NEAR(carried, sent, edge + 1e-6 * sent) << describe(config);
  }
}

}  // namespace
}  // namespace carousel
