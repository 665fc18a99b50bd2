// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// How near the clocks of ranks come to each other, whatever a reading takes.

#include "app/run_clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>
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
  std::vector<std::int64_t> readings = {0, 4'000'000, 0, 0, 0, 0};
  for (int k = 0; k < 1000; ++k) readings.push_back(k % 2 == 0 ? 6'000'000 : 700);
  EXPECT_EQ(error_with(readings), 0);
}

TEST(ReadClocks, IsWrongByNoMoreThanHalfOfTheShortestTry) {
  std::vector<std::int64_t> slow;
  for (int k = 0; k < 1000; ++k) slow.insert(slow.end(), {900, 900, 0});
  slow[31] = 50;  // the system clock of the eleventh try
  EXPECT_LE(error_with(slow), (30 + 50 + 30) / 2);
}

TEST(RunClock, GoesOnFromAnEarlierBeginning) {
  const RunClock first;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  RunClock second;
  const double later = second.seconds();
  EXPECT_LT(later, first.seconds() - 0.004);
  second.begin_at(first.began_nanoseconds());
  EXPECT_EQ(second.began_nanoseconds(), first.began_nanoseconds());
  const double before = first.seconds();
  const double between = second.seconds();
  const double after = first.seconds();
  EXPECT_GE(between, before - 1e-6);  // some times what a reading takes, also under a sanitizer
  EXPECT_LE(between, after + 1e-6);
}

TEST(RunClock, CountsFromABeginningElsewhere) {
  RunClock clock;
  clock.begin_at(clock.began_nanoseconds() - 3'000'000'000);
  EXPECT_GE(clock.seconds(), 3);
  EXPECT_LT(clock.seconds(), 30);
}

}  // namespace
}  // namespace carousel
