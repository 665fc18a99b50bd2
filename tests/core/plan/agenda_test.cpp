// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Pauses of a run: epochs, checkpoints, the end.

#include "core/plan/agenda.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace carousel {
namespace {

using ::testing::ElementsAre;

/// Where segments end, as far as `is` is true of them.
std::vector<std::int64_t> ends(
    const Agenda& agenda,
    const std::function<bool(std::int64_t)>& is = [](std::int64_t) { return true; }) {
  std::vector<std::int64_t> result;
  for (std::int64_t t = 0; t < agenda.total_steps;) {
    t = agenda.segment_at(t).last;
    if (is(t)) result.push_back(t);
  }
  return result;
}

TEST(Agenda, SegmentsEndWithEpochsAndWithTheRun) {
  EXPECT_THAT(ends({.total_steps = 25, .steps_per_epoch = 10}), ElementsAre(10, 20, 25));
  EXPECT_THAT(ends({.total_steps = 3, .steps_per_epoch = 10}), ElementsAre(3));
}

TEST(Agenda, ASegmentMayBeginAnywhere) {
  EXPECT_EQ((Agenda{.total_steps = 440, .steps_per_epoch = 22}.segment_at(24).last), 44);
}

TEST(Agenda, SegmentsEndWhereACheckpointIsDue) {
  const Agenda agenda{.total_steps = 25,
                      .steps_per_epoch = 10,
                      .evaluation_epochs = 1,
                      .checkpoint_epochs = 2,
                      .checkpoint_steps = 7};
  EXPECT_THAT(ends(agenda), ElementsAre(7, 10, 14, 20, 21, 25));
  EXPECT_THAT(ends(agenda, [&](auto t) { return agenda.saves_after(t); }),
              ElementsAre(7, 14, 20, 21, 25));
  EXPECT_THAT(ends(agenda, [&](auto t) { return agenda.evaluates_after(t); }),
              ElementsAre(10, 20, 25));
}

TEST(Agenda, EvaluationsToComeAreThoseThatCome) {
  for (const std::int64_t epochs : {0, 1, 2, 3}) {
    for (const std::int64_t total : {3, 20, 25, 30}) {
      const Agenda agenda{.total_steps = total, .steps_per_epoch = 10, .evaluation_epochs = epochs};
      EXPECT_EQ(agenda.epochs(), total < 10 ? 1 : total < 21 ? 2 : 3);
      std::int64_t wanted = 0;
      for (std::int64_t steps = total; steps >= 0; --steps) {
        EXPECT_EQ(agenda.evaluations_beyond(steps), wanted) << epochs << " " << total;
        wanted += agenda.evaluates_after(steps) && steps > 0 ? 1 : 0;
      }
    }
  }
}

TEST(Agenda, EvaluationsMayCountSteps) {
  for (const std::int64_t total : {3, 8, 20, 25}) {
    const Agenda agenda{.total_steps = total, .steps_per_epoch = 10, .evaluation_steps = 8};
    std::int64_t wanted = 0;
    for (std::int64_t steps = total; steps >= 0; --steps) {
      EXPECT_EQ(agenda.evaluations_beyond(steps), wanted) << total;
      wanted += agenda.evaluates_after(steps) && steps > 0 ? 1 : 0;
    }
    if (total == 25) {
      EXPECT_THAT(ends(agenda), ElementsAre(8, 10, 16, 20, 24, 25));
      EXPECT_THAT(ends(agenda, [&](auto t) { return agenda.evaluates_after(t); }),
                  ElementsAre(8, 16, 24, 25));
    }
  }
}

TEST(Agenda, EpochsGoOnWhereStepsHadAnotherSizeBefore) {
  // 20 steps of half the size were two epochs; the 21st is the first of the third.
  const Agenda agenda{.total_steps = 35,
                      .steps_per_epoch = 5,
                      .ahead = -10,
                      .evaluation_epochs = 1,
                      .checkpoint_epochs = 2};
  EXPECT_EQ(agenda.epochs(), 5);
  EXPECT_EQ(agenda.epochs_after(24), 2);
  EXPECT_EQ(agenda.epochs_after(25), 3);
  EXPECT_EQ(agenda.segment_at(20).last, 25);
  EXPECT_FALSE(agenda.saves_after(25));
  EXPECT_TRUE(agenda.saves_after(30));
  EXPECT_EQ(agenda.evaluations_beyond(20), 3);
}

TEST(Agenda, OnlyTheEndIsCertain) {
  const Agenda agenda{.total_steps = 20, .steps_per_epoch = 10};
  EXPECT_THAT(ends(agenda, [&](auto t) { return agenda.saves_after(t); }), ElementsAre(20));
  EXPECT_THAT(ends(agenda, [&](auto t) { return agenda.evaluates_after(t); }), ElementsAre(20));
}

}  // namespace
}  // namespace carousel
