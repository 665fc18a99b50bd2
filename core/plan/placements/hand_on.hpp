// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// When new parameters reach which device, and from whom. Used by placements alone.

#include <cstdint>
#include <vector>

#include "core/plan/rule.hpp"

namespace carousel::placements {

/// When theta_{t+1} of one stage is at its devices, in time steps from the start of step t. They go
/// from the owner to whoever reads them first, and on in the order in which they are read, so that
/// the stages follow each other over a link as do the forwards that read them. The completed
/// gradient leaves the last device at `ready`; what the first reader needs is a deadline, up to
/// which the total and the parameters share the time. Where nobody reads them in the next step (v1,
/// and v2 with most slack), an owner that is the first reader itself updates a time step before:
/// parameters that leave behind its forward would meet, at the next device, the total of the stage
/// before, where there is one.
class HandOn {
 public:
  /// A device for every worker of `rule`. They are there `early` time steps before they are read,
  /// where there is as much time, and the version before was read for the last time.
  HandOn(const Rule& rule, int stage, int owner, std::int64_t ready, std::int64_t early);

  /// Of theta alone, with prediction, for those who read it in the next step and the owner, and of
  /// what is read in its place in the one behind that: both are made at the same time.
  [[nodiscard]] HandOn of_new(const Rule& rule, int stage) const;
  [[nodiscard]] HandOn of_old(const Rule& rule, int stage) const;

  [[nodiscard]] std::int64_t time_at(int device) const { return times_[device]; }
  /// To whom a device hands them on, and from whom it gets them; -1: nobody.
  [[nodiscard]] int next(int device) const { return next_[device]; }
  [[nodiscard]] int before(int device) const { return before_[device]; }

 private:
  /// When a device has them.
  struct Stop {
    int device = 0;
    std::int64_t time = 0;
  };
  static std::vector<Stop> stops_of(const Rule& rule, int stage, std::int64_t ready,
                                    std::int64_t early);
  /// From the owner, which is among them.
  HandOn(int owner, int devices, std::vector<Stop> stops);

  int owner_;
  std::vector<std::int64_t> times_;  // [device], as the others
  std::vector<int> next_;
  std::vector<int> before_;
};

}  // namespace carousel::placements
