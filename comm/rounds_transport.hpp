// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages in rounds, as NCCL exchanges them, over a transport that needs none: proves a plan's
// rounds without a GPU. It is for that, not for speed.

#include <memory>
#include <vector>

#include "core/engine/transport.hpp"

namespace carousel {

/// Where the devices of this process meet. A device has one group of operations per round, which
/// begins when the one before is over and is over when all of its operations are: each waits for
/// groups of other devices. Messages between two devices have no tags and meet in the order of
/// their start in a group. Outlives the transports it hands out.
class RoundsHub {
 public:
  /// The end of one device with room for `requests` pending operations, which `carrier` carries.
  [[nodiscard]] std::unique_ptr<Transport> transport(std::unique_ptr<Transport> carrier,
                                                     int requests);

 private:
  class End;

  /// Lets groups end and begin until none of this process moves.
  void go_on();

  std::vector<End*> ends_;
};

}  // namespace carousel
