// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// When new parameters reach which device of a ring. Used by placements alone.

#include <cstdint>
#include <vector>

#include "core/plan/rule.hpp"

namespace carousel::placements {

/// When theta_{t+1} of one stage is at the owner (hop 0) and its successors on the ring, in time
/// steps from the start of step t. The completed gradient leaves the last device at `ready`; the
/// first reader's need is a deadline, and the messages up to it share the time evenly. Where the
/// slack lets nobody read them in the next step (v1, and v2 with slack = S), each hop around the
/// ring takes one time step, so that stages follow each other over a link as do the forwards that
/// read them; the total has what is left, for it meets partial sums at its owner. An owner that is
/// the first reader itself updates a time step before: parameters that leave behind its forward
/// would meet, at the next device, the total of the stage before, where there is one.
class HandOn {
 public:
  /// A ring of a device for every micro-batch of `rule`. They are there `early` time steps before
  /// they are read, where there is as much time.
  HandOn(const Rule& rule, int stage, int owner, std::int64_t ready, std::int64_t early);

  [[nodiscard]] int device(int hop) const { return (owner_ + hop) % devices_; }
  [[nodiscard]] std::int64_t time_at(int device) const {
    return times_[(device - owner_ + devices_) % devices_];
  }
  /// When the device reads them.
  [[nodiscard]] static std::int64_t first_use(const Rule& rule, int device, int stage) {
    return rule.forward_time(device, stage, rule.fresh(device, stage) ? 1 : 2);
  }

 private:
  int owner_;
  int devices_;
  std::vector<std::int64_t> times_;
};

}  // namespace carousel::placements
