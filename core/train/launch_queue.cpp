// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/launch_queue.hpp"

#include <utility>

#include "core/base/check.hpp"

namespace carousel {

LaunchQueue::LaunchQueue(const ExecutionSpace& exec, int room, int of_action)
    : exec_(exec),
      entries_(room + 1),
      of_action_(static_cast<std::size_t>(of_action)),
      timeline_(exec, room + 1) {}

void LaunchQueue::submit(const Task& task, bool yields) {
  CAROUSEL_CHECK(submitted_ - run_ < entries_.size(), "a queue has room for {} tasks",
                 entries_.size());
  entries_[submitted_++ % entries_.size()] = {task, std::exchange(after_, {}), yields, false};
}

void LaunchQueue::wait(const Event& event) {
  CAROUSEL_CHECK(after_.timeline == nullptr, "a task waits for one event");
  after_ = event;
}

Event LaunchQueue::record() {
  if (covered_ == submitted_) return {&timeline_, events_};
  ++events_;
  covered_ = submitted_;
  if (empty())
    timeline_.mark();
  else
    entries_[(submitted_ - 1) % entries_.size()].recorded = true;
  return {&timeline_, events_};
}

bool LaunchQueue::run_next() {
  Entry& entry = entries_[run_ % entries_.size()];
  entry.after.hold(exec_);
  entry.task();
  ++run_;
  if (entry.recorded) timeline_.mark();
  return entry.recorded;
}

}  // namespace carousel
