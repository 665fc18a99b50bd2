// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How fast training steps are done: their number over the time that passed, however many of them a
// device learns of at once. It reads no clock.

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

namespace carousel {

class Speed {
 public:
  /// Over at least so long and so many steps, if there have been as many.
  static constexpr double window_seconds = 0.25;
  static constexpr std::int64_t window_steps = 8;

  /// Steps are trained from now on, until end(); the time in between counts for nothing.
  void begin(double now) {
    if (marked_ == 0) marks_[marked_++] = {now, 0};
    for (Mark& mark : marks_) mark.seconds += now - (ended_ < 0 ? now : ended_);
  }
  void end(double now) { ended_ = now; }

  /// `steps` more are done. Returns steps per second; 0 where no time has passed.
  double add(std::int64_t steps, double now) {
    steps_ += steps;
    Mark since = mark(0);
    for (std::int64_t back = 0; back < kept(); ++back) {
      since = mark(back);
      if (now - since.seconds >= window_seconds && steps_ - since.steps >= window_steps) break;
    }
    if (now - mark(0).seconds >= between_marks)
      marks_[marked_++ % std::ssize(marks_)] = {now, steps_};
    const double passed = now - since.seconds;
    return passed > 0 ? static_cast<double>(steps_ - since.steps) / passed : 0;
  }

 private:
  struct Mark {
    double seconds = 0;
    std::int64_t steps = 0;  // done by then
  };
  // Far enough apart for all that are kept to reach back by the window.
  static constexpr double between_marks = 0.01;

  [[nodiscard]] std::int64_t kept() const { return std::min(marked_, std::ssize(marks_)); }
  /// The newest one but `back`.
  [[nodiscard]] const Mark& mark(std::int64_t back) const {
    return marks_[(marked_ - 1 - back) % std::ssize(marks_)];
  }

  std::array<Mark, 32> marks_ = {};
  std::int64_t marked_ = 0;
  std::int64_t steps_ = 0;
  double ended_ = -1;
};

}  // namespace carousel
