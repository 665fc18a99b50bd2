// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A compute queue whose tasks the thread that owns it runs, one by one, when it is told to: the
// queues of a process take turns on the one thread that Kokkos has. A task launches work; what it
// waits for need only be launched, too, where the device itself can wait.

#include <vector>

#include "core/base/view.hpp"
#include "core/engine/launch_timeline.hpp"
#include "core/engine/queue.hpp"

namespace carousel {

class LaunchQueue final : public Queue {
 public:
  /// For so many tasks, which launch work on `exec`; full where it has no room for as many as one
  /// action may take.
  LaunchQueue(const ExecutionSpace& exec, int room, int of_action = 2);

  [[nodiscard]] bool full() const override {
    return submitted_ - run_ + of_action_ > entries_.size() || !timeline_.has_room();
  }
  [[nodiscard]] bool empty() const { return submitted_ == run_; }
  void submit(const Task& task, bool yields = false) override;
  void wait(const Event& event) override;
  [[nodiscard]] Event record() override;

  /// Whether the next task is one that yields.
  [[nodiscard]] bool yields() const { return next().yields; }
  /// Whether the next task cannot be run yet.
  [[nodiscard]] bool blocked() const {
    return !next().after.launched() || (next().recorded && !timeline_.has_room());
  }
  /// Runs the next task; returns whether an event follows it.
  bool run_next();

 private:
  struct Entry {
    Task task;
    Event after = {};  // of another queue
    bool yields = false;
    bool recorded = false;  // somebody asked for the event behind it
  };
  [[nodiscard]] const Entry& next() const { return entries_[run_ % entries_.size()]; }

  ExecutionSpace exec_;
  std::vector<Entry> entries_;  // task k in k % room
  std::size_t of_action_;
  std::size_t submitted_ = 0;
  std::size_t run_ = 0;
  Event after_ = {};         // of the next one to be submitted
  LaunchTimeline timeline_;  // of the events that were asked for
  std::int64_t events_ = 0;  // so many
  std::size_t covered_ = 0;  // tasks before the last of them
};

}  // namespace carousel
