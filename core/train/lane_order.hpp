// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What keeps the actions of a device in order where several compute queues share them: who reads a
// buffer waits for its last writer, and who writes it for all who have read it since.

#include <vector>

#include "core/engine/queue.hpp"
#include "core/plan/schedule.hpp"

namespace carousel {

class LaneOrder {
 public:
  /// Of the actions of `device` on so many lanes.
  LaneOrder(const Schedule& schedule, int device, int lanes);

  /// The lane of an action: those of passes are taken in turn by the slots of micro-batches; all
  /// else, and what is not of a training step, is of lane 0.
  [[nodiscard]] int lane_of(const Action& action, bool training) const;

  /// A segment begins, and all that was before is over.
  void begin(std::int64_t first_step);
  /// Behind these events of other lanes an action of a training step may begin; they stay as they
  /// are until the next call.
  [[nodiscard]] const std::vector<Event>& before(const Action& action);
  /// It is handed over, and `done` is reached behind it.
  void after(const Action& action, const Event& done);

 private:
  /// A buffer that an action touches, by number.
  struct Use {
    int buffer;
    bool writes;
  };
  /// The newest access of every lane; none: no timeline.
  struct Accesses {
    std::vector<Event> reads;
    std::vector<Event> writes;
  };

  void find_uses(const Action& action);
  [[nodiscard]] int version_of(int stage, std::int64_t version) const;

  const Schedule& schedule_;
  int device_;
  int lanes_;
  const BufferCounts& counts_;
  std::vector<int> frames_;      // [stage] number of its first one; inputs come before them
  std::vector<int> boundaries_;  // [stage] likewise
  int gradients_ = 0;
  int parameters_ = 0;
  std::int64_t first_step_ = 0;
  PassBuffers pass_;
  std::vector<Use> uses_;  // of the action in hand
  std::vector<Accesses> accesses_;
  std::vector<Event> before_;
};

}  // namespace carousel
