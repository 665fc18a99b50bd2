// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/deadline.hpp"

#include <algorithm>
#include <chrono>

namespace carousel {
namespace {

constexpr double slice = 0.2;  // seconds

}  // namespace

Deadline::Deadline(double seconds, std::function<void()> too_late) {
  if (seconds <= 0) return;
  thread_ = std::thread([this, seconds, too_late = std::move(too_late)] {
    std::unique_lock lock(mutex_);
    // Slice by slice, so that time in which the whole process was stopped counts for one at most.
    for (double left = seconds; left > 0; left -= slice) {
      const std::chrono::duration<double> time(std::min(left, slice));
      if (met_.wait_for(lock, time, [this] { return is_met_; })) return;
    }
    too_late();
  });
}

Deadline::~Deadline() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_met_ = true;
  }
  met_.notify_one();
  thread_.join();
}

}  // namespace carousel
