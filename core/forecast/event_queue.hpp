// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the simulator has yet to look at, in the order in which it is served. It does not know why
// an event waits.

#include <algorithm>
#include <functional>
#include <tuple>
#include <vector>

namespace carousel {

/// An exchange that may begin at `time`. Smaller is served first.
struct Event {
  double time = 0;
  double ready = 0;  // all ends had started
  int from = 0;
  int index = 0;  // in the list of `from`
  int exchange = 0;
  int port = -1;  // that it queued for

  [[nodiscard]] bool operator>(const Event& other) const {
    return std::tie(time, ready, from, index, exchange) >
           std::tie(other.time, other.ready, other.from, other.index, other.exchange);
  }
};

/// A heap whose top is the smallest.
class EventQueue {
 public:
  [[nodiscard]] bool empty() const { return events_.empty(); }
  [[nodiscard]] const Event& top() const { return events_.front(); }
  void push(const Event& event) {
    events_.push_back(event);
    std::ranges::push_heap(events_, std::greater<>());
  }
  Event pop() {
    std::ranges::pop_heap(events_, std::greater<>());
    const Event event = events_.back();
    events_.pop_back();
    return event;
  }

 private:
  std::vector<Event> events_;
};

}  // namespace carousel
