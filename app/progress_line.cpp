// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/progress_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "app/complaint.hpp"

namespace carousel {

ProgressLine::ProgressLine(std::string what, std::string unit)
    : what_(std::move(what)), unit_(std::move(unit)), style_(TerminalStyle::of(STDERR_FILENO)) {}

ProgressLine::~ProgressLine() {
  if (line_open_) tell("\r\033[K");
}

double ProgressLine::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begun_).count();
}

void ProgressLine::show(std::size_t done, std::size_t all) {
  using std::chrono::milliseconds;
  const Clock::time_point now = Clock::now();
  if (!counts_ || done < last_) {
    counted_from_ = now;
    first_ = done;
    counts_ = true;
  }
  last_ = done;
  if (now - shown_ < (style_.live ? milliseconds(100) : milliseconds(5000))) return;
  shown_ = now;
  const auto percent = 100.0 * static_cast<double>(done) / static_cast<double>(all);
  std::string text = fmt::format("{}  {:3.0f}%  {} of {} {}", what_, percent, done, all, unit_);
  const std::chrono::duration<double> counted = now - counted_from_;
  if (counted >= std::chrono::seconds(1) && done > first_) {
    const double rate = static_cast<double>(done - first_) / counted.count();
    const double left = static_cast<double>(all - done) / rate;
    text += fmt::format("  {:.0f}/s  {:.0f} s left", rate, left);
  }
  tell(fmt::format("{}{}{}", style_.live ? "\r" : "", text, style_.live ? "\033[K" : "\n"));
  line_open_ = style_.live;
}

}  // namespace carousel
