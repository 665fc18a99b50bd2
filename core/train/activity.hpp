// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a device is doing, for others to look at: the executor writes it action by action, and a
// watchdog reads it from a thread of its own.

#include <cstdint>
#include <mutex>
#include <string>

#include "core/plan/action.hpp"

namespace carousel {

class Activity {
 public:
  /// The device turns to an action, and is done with it.
  void starts(const Action& action);
  void ends();
  /// So many training steps are done, as the device has learned.
  void completes(std::int64_t steps);

  /// Changes with every action.
  [[nodiscard]] std::uint64_t count() const;
  /// Whether it is at a load, which waits for data.
  [[nodiscard]] bool is_loading() const;
  /// Training steps that are done, as far as it knows.
  [[nodiscard]] std::int64_t steps() const;
  /// One line: what it does or waits for, and what it did last.
  [[nodiscard]] std::string text() const;

 private:
  mutable std::mutex mutex_;
  Action now_;
  Action last_;
  std::int64_t completed_ = 0;  // training steps
  bool busy_ = false;
  std::uint64_t count_ = 0;  // starts and ends
};

}  // namespace carousel
