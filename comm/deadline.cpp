// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/deadline.hpp"

#include <chrono>

namespace carousel {

Deadline::Deadline(double seconds, std::function<void()> too_late) {
  if (seconds <= 0) return;
  thread_ = std::thread([this, seconds, too_late = std::move(too_late)] {
    std::unique_lock lock(mutex_);
    const std::chrono::duration<double> time(seconds);
    if (!met_.wait_for(lock, time, [this] { return is_met_; })) too_late();
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
