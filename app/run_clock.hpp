// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The time of a run, in which its ranks record actions and messages: theirs must fit together to
// less than a message takes, which is under a microsecond within a node.

#include <cstdint>
#include <functional>

namespace carousel {

/// One moment on two clocks, in nanoseconds.
struct Moment {
  std::int64_t forward = 0;  // since some moment in the past; never set back
  std::int64_t system = 0;   // since 1970, as the node was told
};

using Nanoseconds = std::function<std::int64_t()>;

/// Reads two clocks as nearly at once as several tries allow: between two readings a thread may
/// lose its core, and a first call looks for its function. Wrong by no more than half of the
/// shortest time that any try took.
[[nodiscard]] Moment read_clocks(const Nanoseconds& forward, const Nanoseconds& system);

/// Seconds since a run began, the same moment for all its ranks: of a clock that only moves
/// forward, set once by the clocks of the nodes, so that times of different ranks can be compared.
class RunClock {
 public:
  RunClock();
  /// When this rank began, in nanoseconds since 1970.
  [[nodiscard]] std::int64_t began() const { return start_.system; }
  /// Takes such a beginning, that of rank 0, for that of the run.
  void begin_at(std::int64_t system);
  [[nodiscard]] double seconds() const;

 private:
  Moment start_;
};

}  // namespace carousel
