// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Seconds of actions, from what devices recorded.

#include "core/forecast/measured_costs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/support.hpp"

namespace carousel {
namespace {

using testing::failure;
using ::testing::HasSubstr;

/// Two devices whose stage 1 takes twice as long as stage 0, and `slow` times as long in the first
/// two steps and in one of the others.
std::vector<std::vector<ActionRecord>> recorded(int steps, bool backward_of_1 = true) {
  std::vector<std::vector<ActionRecord>> devices(2);
  for (int device = 0; device < 2; ++device) {
    double now = 0;
    const auto add = [&](const char* kind, std::int64_t step, int stage, double seconds) {
      constexpr double slow = 50;
      seconds *= step < 2 || step == 4 ? slow : 1;
      devices[device].push_back({kind, step, 0, stage, -1, 0, now, now + seconds});
      now += seconds;
    };
    for (int t = 0; t < steps; ++t) {
      add("load", t, -1, 0.25);
      for (const int j : {0, 1}) {
        add("forward", t, j, 1 + j);
        if (j == 0 || backward_of_1) add("backward", t, j, 2 * (1 + j));
        if (device == j) add("update", t, j, 0.5 * (1 + j));
        add("wait", t, j, 7);
      }
    }
  }
  return devices;
}

std::vector<StageSeconds> otherwise() {
  std::vector<StageSeconds> stages(2);
  stages[1].accumulate = 9;
  return stages;
}

TEST(MeasuredCosts, AreMediansByKindAndStage) {
  const std::vector<StageSeconds> seconds = measured_seconds("run", recorded(8), otherwise());
  ASSERT_EQ(seconds.size(), 2U);
  EXPECT_NEAR(seconds[0].load, 0.25, 1e-9);
  for (const int j : {0, 1}) {
    EXPECT_NEAR(seconds[j].forward, 1 + j, 1e-9);
    EXPECT_NEAR(seconds[j].backward, 2 * (1 + j), 1e-9);
    EXPECT_NEAR(seconds[j].update, 0.5 * (1 + j), 1e-9);
  }
  // Of a run that cuts stages, those of a piece are not those of a stage.
  const auto in_pieces = measured_seconds("run", recorded(8), otherwise(), true);
  EXPECT_EQ(in_pieces[1].forward, seconds[1].forward);
  EXPECT_EQ(in_pieces[1].update, 0);
  // The run added nothing, so that is not known from it.
  EXPECT_EQ(seconds[0].accumulate, 0);
  EXPECT_EQ(seconds[1].accumulate, 9);
}

TEST(MeasuredCosts, TakeTheFirstStepsOfAShortRun) {
  EXPECT_NEAR(measured_seconds("run", recorded(2), otherwise())[1].forward, 100, 1e-9);
}

TEST(MeasuredCosts, NeedEveryPass) {
  EXPECT_THAT(
      failure(ExitCode::bad_data,
              [&] { static_cast<void>(measured_seconds("run", recorded(8, false), otherwise())); }),
      HasSubstr("run: no backward of stage 1 was recorded"));
}

}  // namespace
}  // namespace carousel
