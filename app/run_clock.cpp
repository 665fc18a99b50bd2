// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/run_clock.hpp"

#include <chrono>
#include <limits>

namespace carousel {
namespace {

template <class Clock>
std::int64_t nanoseconds() {
  using Unit = std::chrono::nanoseconds;
  return std::chrono::duration_cast<Unit>(Clock::now().time_since_epoch()).count();
}

}  // namespace

Moment read_clocks(const NanosecondClock& forward, const NanosecondClock& system) {
  constexpr int tries = 32;  // some microseconds; one in which the thread keeps its core is enough
  Moment best;
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  for (int k = 0; k < tries; ++k) {
    const std::int64_t before = forward();
    const std::int64_t between = system();
    const std::int64_t took = forward() - before;
    if (took >= shortest) continue;
    shortest = took;
    best = {.forward = before + took / 2, .system = between};
  }
  return best;
}

RunClock::RunClock()
    : start_(read_clocks(nanoseconds<std::chrono::steady_clock>,
                         nanoseconds<std::chrono::system_clock>)) {}

void RunClock::begin_at(std::int64_t nanoseconds) {
  start_.forward += nanoseconds - start_.system;
  start_.system = nanoseconds;
}

double RunClock::seconds() const {
  return 1e-9 * static_cast<double>(nanoseconds<std::chrono::steady_clock>() - start_.forward);
}

}  // namespace carousel
