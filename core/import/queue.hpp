// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A few things on their way from one thread to others, so that neither runs far ahead.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace carousel {

template <class T>
class Queue {
 public:
  explicit Queue(std::size_t most) : most_(most) {}

  /// Waits for room. After close() what is pushed is dropped, and false returned.
  bool push(T thing) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return closed_ || things_.size() < most_; });
    if (closed_) return false;
    things_.push_back(std::move(thing));
    filled_.notify_one();
    return true;
  }
  /// Waits for the next thing; nothing when the queue is closed and empty.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [&] { return closed_ || !things_.empty(); });
    if (things_.empty()) return std::nullopt;
    std::optional<T> thing(std::move(things_.front()));
    things_.pop_front();
    room_.notify_one();
    return thing;
  }
  /// No more will come; what is in it can still be had.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    filled_.notify_all();
    room_.notify_all();
  }

 private:
  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::condition_variable room_;
  std::deque<T> things_;
  bool closed_ = false;
};

}  // namespace carousel
