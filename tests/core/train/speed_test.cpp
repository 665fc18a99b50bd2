// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Speeds are steps over time, also where a device learns of steps in bursts.

#include "core/train/speed.hpp"

#include <gtest/gtest.h>

namespace carousel {
namespace {

TEST(Speed, IsExactFromTheBeginning) {
  Speed speed;
  speed.begin(5);
  EXPECT_DOUBLE_EQ(speed.add(1, 5.5), 2);
  EXPECT_DOUBLE_EQ(speed.add(3, 6), 4);
}

TEST(Speed, LeavesOutWhatLiesBetweenSegments) {
  Speed speed;
  speed.begin(5);
  EXPECT_EQ(speed.add(1, 5), 0) << "no time has passed";
  EXPECT_NEAR(speed.add(3, 5.1), 40, 1e-9);
  speed.end(5.1);
  speed.begin(7);
  EXPECT_NEAR(speed.add(2, 7.1), 30, 1e-9) << "an evaluation counts";
}

TEST(Speed, OfBurstsIsThatOfTheirSteps) {
  // 20 steps within a millisecond every 100 ms, as on a core that others use.
  for (const int burst : {1, 4, 20}) {
    Speed speed;
    speed.begin(0);
    for (int period = 1; period < 100; ++period) {
      for (int k = 0; k < 20; k += burst) {
        const double now = 0.1 * period + 0.001 * k / 20;
        const double found = speed.add(burst, now);
        if (period < 4) continue;
        EXPECT_GE(found, 0.65 * 200) << burst << " at once, period " << period;
        EXPECT_LE(found, 1.35 * 200) << burst << " at once, period " << period;
      }
    }
  }
}

TEST(Speed, FollowsWhatChanges) {
  Speed speed;
  double now = 0;
  speed.begin(now);
  for (int k = 0; k < 10000; ++k) speed.add(1, now += 1e-4);
  EXPECT_NEAR(speed.add(1, now += 1e-4), 1e4, 100);
  for (int k = 0; k < 10; ++k) speed.add(1, now += 1);
  EXPECT_NEAR(speed.add(1, now += 1), 1, 1e-9);
}

}  // namespace
}  // namespace carousel
