// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/heartbeat.hpp"

#include <utility>

namespace carousel {

Heartbeat::Heartbeat(std::chrono::milliseconds pause, std::function<void()> beat)
    : thread_([this, pause, beat = std::move(beat)] {
        std::unique_lock lock(mutex_);
        while (!over_.wait_for(lock, pause, [this] { return is_over_; })) {
          lock.unlock();
          beat();
          lock.lock();
        }
      }) {}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_one();
  thread_.join();
}

}  // namespace carousel
