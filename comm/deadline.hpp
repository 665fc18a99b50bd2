// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// For calls that may never return, such as those with which MPI starts and ends.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace carousel {

/// Calls a function from a thread of its own unless it is destroyed in time, of which none counts
/// in which the process was suspended.
class Deadline {
 public:
  /// `seconds` = 0: there is no hurry.
  Deadline(double seconds, std::function<void()> too_late);
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  ~Deadline();

 private:
  std::mutex mutex_;
  std::condition_variable met_;
  bool is_met_ = false;
  std::thread thread_;
};

}  // namespace carousel
