// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How far a command has come, on standard error: one line that changes on a terminal, a line every
// few seconds in a file. Training has a terminal of its own.

#include <chrono>
#include <cstddef>
#include <string>

#include "app/terminal.hpp"

namespace carousel {

class ProgressLine {
 public:
  /// `what` begins each line, `unit` is what is counted: "import", "images".
  ProgressLine(std::string what, std::string unit);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  /// Shows it, or leaves it out if the last time is not long ago. Rate and time left are those
  /// since the first call, or since `done` fell, and come once they can be told.
  void show(std::size_t done, std::size_t all);
  [[nodiscard]] double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  std::string unit_;
  TerminalStyle style_;
  Clock::time_point begun_ = Clock::now();
  Clock::time_point shown_ = begun_;
  Clock::time_point counted_from_ = begun_;  // when the count was first_
  std::size_t first_ = 0;
  std::size_t last_ = 0;
  bool counts_ = false;
  bool line_open_ = false;
};

}  // namespace carousel
