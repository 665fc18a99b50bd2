// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// How near the clocks of ranks come to each other, whatever a reading takes.

#include "app/run_clock.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace carousel {
namespace {

constexpr std::int64_t apart = 1'700'000'000'000'000'000;  // of the two clocks, nanoseconds

/// Reads both clocks where every reading takes 30 ns and, by its number, what `more` says on top;
/// returns by how much the moment is wrong.
std::int64_t error_with(const std::vector<std::int64_t>& more) {
  std::int64_t now = 5'000;
  std::size_t reading = 0;
  const auto read = [&] {
    now += 30 + (reading < more.size() ? more[reading] : 0);
    ++reading;
    return now;
  };
  const Moment moment = read_clocks(read, [&] { return read() + apart; });
  return std::abs(moment.system - moment.forward - apart);
}

TEST(ReadClocks, IsExactWhereReadingsTakeTheSame) {
  EXPECT_EQ(error_with({}), 0);
}

TEST(ReadClocks, AFirstCallMayTakeLong) {
  EXPECT_EQ(error_with({20'000, 40'000, 100}), 0);
}

TEST(ReadClocks, AThreadMayLoseItsCoreBetweenReadings) {
  EXPECT_EQ(error_with({0, 4'000'000, 0, 0, 0, 6'000'000, 700}), 0);
}

TEST(ReadClocks, IsWrongByHalfOfTheShortestTry) {
  std::vector<std::int64_t> slow;
  for (int k = 0; k < 1000; ++k) slow.insert(slow.end(), {900, 900, 0});
  slow[31] = 50;  // the system clock of the eleventh try
  EXPECT_LE(error_with(slow), (30 + 50 + 30) / 2);
}

TEST(RunClock, GoesOnFromTheBeginningOfRankZero) {
  RunClock first, second;
  EXPECT_GE(second.began(), first.began());
  second.begin_at(first.began());
  EXPECT_EQ(second.began(), first.began());
  const double before = first.seconds();
  const double between = second.seconds();
  const double after = first.seconds();
  EXPECT_GE(between, before - 5e-7);
  EXPECT_LE(between, after + 5e-7);
}

TEST(RunClock, CountsFromABeginningElsewhere) {
  RunClock clock;
  clock.begin_at(clock.began() - 3'000'000'000);
  EXPECT_GE(clock.seconds(), 3);
  EXPECT_LT(clock.seconds(), 30);
}

}  // namespace
}  // namespace carousel
