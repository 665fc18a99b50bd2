// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The time of a run, in which its ranks record actions and messages: within a node theirs fit
// together to less than a message takes. Between nodes they are as good as the nodes' clocks.

#include <cstdint>
#include <functional>

namespace carousel {

/// One moment on two clocks, in nanoseconds.
struct Moment {
  std::int64_t forward = 0;  // since some moment in the past; never set back
  std::int64_t system = 0;   // since 1970, by the clock of the node
};

using NanosecondClock = std::function<std::int64_t()>;

/// Reads two clocks as nearly at once as several tries allow: between two readings a thread may
/// lose its core, and a first call looks for its function. Wrong by no more than half, rounded up,
/// of the shortest time that any try took.
[[nodiscard]] Moment read_clocks(const NanosecondClock& forward, const NanosecondClock& system);

/// Seconds since a run began, the same moment for all its ranks: of a clock that only moves
/// forward, set once by the clocks of the nodes, so that times of different ranks can be compared.
class RunClock {
 public:
  RunClock();
  /// When the run began, as far as this rank knows, since 1970.
  [[nodiscard]] std::int64_t began_nanoseconds() const { return start_.system; }
  /// Takes such a beginning, the earliest of all ranks, for that of the run.
  void begin_at(std::int64_t nanoseconds);
  [[nodiscard]] double seconds() const;  // never negative

 private:
  Moment start_;
};

}  // namespace carousel
