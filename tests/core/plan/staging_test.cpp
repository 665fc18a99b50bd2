// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Host memory of messages under way: places do not overlap, and what was planned is enough for
// every segment and all that follows.

#include "core/plan/staging.hpp"

#include <gtest/gtest.h>

#include <random>

#include "core/base/align.hpp"
#include "core/plan/evaluation.hpp"
#include "core/plan/memory_plan.hpp"
#include "tests/core/plan/schedules.hpp"

namespace carousel {
namespace {

using testing::all_variants;
using testing::describe;
using testing::schedule_of;

TEST(StagingPlaces, AreTheFirstThatFit) {
  StagingPlaces places(8, false);
  EXPECT_EQ(places.take(0), -1);
  EXPECT_EQ(places.take(1), 0);
  EXPECT_EQ(places.take(align_up(1) + 1), align_up(1));
  EXPECT_EQ(places.take(1), 3 * align_up(1));
  places.give_back(align_up(1));
  EXPECT_EQ(places.take(3 * align_up(1)), 4 * align_up(1));
  EXPECT_EQ(places.take(align_up(1)), align_up(1));
  EXPECT_EQ(places.take(align_up(1)), 2 * align_up(1));
  EXPECT_EQ(places.size(), 7 * align_up(1));
  places.give_back(-1);
}

TEST(StagingPlaces, AreOfOneSizeUntilNothingIsUnderWay) {
  StagingPlaces places(8, true);
  const std::int64_t one = align_up(1);
  EXPECT_EQ(places.take(1), 0);
  EXPECT_EQ(places.take(one + 1), one);
  places.give_back(0);
  EXPECT_EQ(places.take(2 * one), 3 * one) << "in no gap, though two of these would fit";
  EXPECT_EQ(places.take(1), 0);
  for (const std::int64_t offset : {std::int64_t{0}, one, 3 * one}) places.give_back(offset);
  EXPECT_EQ(places.take(2 * one), 0);
  EXPECT_EQ(places.size(), 5 * one);
}

class Places : public ::testing::TestWithParam<bool> {};

TEST_P(Places, NeverOverlap) {
  std::mt19937 random(3);
  StagingPlaces places(64, GetParam());
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;
  for (int trial = 0; trial < 5000; ++trial) {
    if (taken.size() == 64 || (!taken.empty() && random() % 2 == 0)) {
      const std::size_t k = random() % taken.size();
      places.give_back(taken[k].first);
      taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(k));
      continue;
    }
    const auto bytes = 1 + static_cast<std::int64_t>(random() % 1000);
    const std::int64_t begin = places.take(bytes);
    for (const auto& [other, size] : taken)
      ASSERT_TRUE(begin + bytes <= other || other + size <= begin);
    taken.emplace_back(begin, bytes);
  }
}
INSTANTIATE_TEST_SUITE_P(BySize, Places, ::testing::Bool());

/// Walks a list as a queue does that is handed it; returns the most bytes under way at once.
std::int64_t walk(const std::vector<Action>& list, StagingPlaces& places) {
  std::vector<std::pair<Action, std::int64_t>> under_way;
  std::int64_t bytes = 0;
  std::int64_t most = 0;
  for (const Action& action : list) {
    if (starts_message(action)) {
      under_way.emplace_back(action, places.take(action.bytes));
      bytes += action.bytes;
      most = std::max(most, bytes);
    }
    if (action.kind != ActionKind::wait) continue;
    const auto found = std::ranges::find_if(
        under_way, [&](const auto& started) { return same_message(started.first, action); });
    places.give_back(found->second);
    bytes -= found->first.bytes;
    under_way.erase(found);
  }
  return most;
}

class Staging : public ::testing::TestWithParam<int> {};  // N

TEST_P(Staging, IsEnoughForEverySegment) {
  constexpr std::int64_t batches = 5;
  double planned = 0;  // bytes of all plans and devices
  double under_way = 0;
  double before = 0;  // a place of the largest message for every request
  for (int stages = 1; stages <= 5; ++stages) {
    for (ParallelConfig config : all_variants(GetParam(), stages)) {
      // Evaluations then send more.
      if (config.rule != RuleKind::dp && stages % 2 == 0 && has_prediction(config))
        config.predict = 1;
      const Schedule schedule = schedule_of(config);
      if (schedule.devices() == 1) continue;
      SCOPED_TRACE(describe(config));
      const std::vector<std::int64_t> bytes = staging_bytes(schedule, batches, report_bytes(1));
      const Segment longest{0, 3 * schedule.window().last + 7};
      std::vector<std::vector<std::vector<Action>>> all = {
          schedule.lists(longest), closing_actions(schedule, 7),
          evaluation_actions(schedule, batches, 2, report_bytes(1))};
      for (std::int64_t first = 0; first < 5; ++first) {
        for (std::int64_t steps = 1; steps < 12; ++steps)
          all.push_back(schedule.lists({first, first + steps}));
      }
      for (int d = 0; d < schedule.devices(); ++d) {
        std::int64_t most = 0;
        std::int64_t largest = 0;
        for (const auto& lists : all) {
          StagingPlaces places(schedule.buffers(d).requests, stages_by_size(schedule));
          most = std::max(most, walk(lists[d], places));
          ASSERT_LE(places.size(), bytes[d]) << "device " << d;
          for (const Action& action : lists[d]) largest = std::max(largest, action.bytes);
        }
        ASSERT_GE(bytes[d], most) << "device " << d;
        planned += static_cast<double>(bytes[d]);
        under_way += static_cast<double>(most);
        before += static_cast<double>(schedule.buffers(d).requests * largest);
      }
    }
  }
  if (planned == 0) return;  // N = 1 has hardly a message
  EXPECT_LT(planned, before);
  fmt::print(
      "N = {}: staging is {:.2f} of what is under way at once, {:.2f} of a largest message "
      "for every request\n",
      GetParam(), planned / under_way, planned / before);
}
INSTANTIATE_TEST_SUITE_P(MicroBatches, Staging, ::testing::Range(1, 7));

}  // namespace
}  // namespace carousel
