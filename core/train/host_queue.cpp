// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/host_queue.hpp"

#include <utility>

#include "core/base/check.hpp"
#include "core/base/copy.hpp"

namespace carousel {

HostQueue::HostQueue(const ExecutionSpace& exec, int room) : exec_(exec), entries_(room + 1) {}

void HostQueue::submit(const Task& task, bool yields) {
  CAROUSEL_CHECK(submitted_ - run_ < entries_.size(), "a queue has room for {} tasks",
                 entries_.size());
  entries_[submitted_++ % entries_.size()] = {task, std::exchange(after_, {}), yields, false};
}

void HostQueue::wait(const Event& event) {
  CAROUSEL_CHECK(after_.timeline == nullptr, "a task waits for one event");
  after_ = event;
}

Event HostQueue::record() {
  const auto value = static_cast<std::int64_t>(submitted_);
  if (!empty()) {
    entries_[(submitted_ - 1) % entries_.size()].recorded = true;
  } else if (!timeline_.has_reached(value)) {
    finish(exec_, "carousel::train::event");
    timeline_.reach(value);
  }
  return {&timeline_, value};
}

bool HostQueue::run_next() {
  Entry& entry = entries_[run_ % entries_.size()];
  entry.task();
  ++run_;
  if (!entry.recorded) return false;
  finish(exec_, "carousel::train::event");
  timeline_.reach(static_cast<std::int64_t>(run_));
  return true;
}

}  // namespace carousel
