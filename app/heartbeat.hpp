// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Does something again and again while a training goes on, from a thread of its own, so that the
// training never waits for it. What is done, it does not know.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace carousel {

class Heartbeat {
 public:
  /// Calls `beat`, which must not throw, whenever so much time has passed.
  Heartbeat(std::chrono::milliseconds pause, std::function<void()> beat);
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  /// Waits for a beat that has begun.
  ~Heartbeat();

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace carousel
