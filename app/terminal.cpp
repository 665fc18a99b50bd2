// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "core/base/text.hpp"

namespace carousel {
namespace {

constexpr double live_interval = 0.1;  // seconds
constexpr double plain_interval = 5;

constexpr std::string_view erase_line = "\r\x1b[K";
constexpr std::string_view bold = "\x1b[1m";
constexpr std::string_view normal = "\x1b[0m";

/// Text of bounded length; what does not fit is left out.
class Line {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    const auto result = fmt::format_to_n(data_.data() + size_, data_.size() - size_, format,
                                         std::forward<Args>(args)...);
    size_ = static_cast<std::size_t>(result.out - data_.data());
  }
  void cut(std::size_t columns) { size_ = std::min(size_, columns); }
  [[nodiscard]] std::string_view text() const { return {data_.data(), size_}; }

 private:
  std::array<char, 256> data_{};
  std::size_t size_ = 0;
};

void add_duration(Line& line, double seconds) {
  const auto total = static_cast<std::int64_t>(std::min(seconds + 0.5, 3.6e8));
  if (total >= 3600) {
    line.add("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
  } else {
    line.add("{}:{:02}", total / 60, total % 60);
  }
}

}  // namespace

TerminalStyle TerminalStyle::of(int descriptor) {
  TerminalStyle style;
  const char* kind = std::getenv("TERM");
  style.live = isatty(descriptor) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
  const char* no_color = std::getenv("NO_COLOR");
  style.colour = style.live && (no_color == nullptr || *no_color == '\0');
  return style;
}

Terminal::Terminal(int descriptor, const TerminalStyle& style, const RunLength& length)
    : descriptor_(descriptor), style_(style), length_(length) {}

Terminal::~Terminal() {
  erase();
}

void Terminal::step(const StepRecord& record) noexcept {
  const bool last = record.step + 1 >= length_.steps;
  const double interval = style_.live ? live_interval : plain_interval;
  if (!started_) {
    started_ = true;
    first_seconds_ = record.seconds;
  } else if (record.seconds - shown_seconds_ < interval && !last) {
    return;
  }
  shown_seconds_ = record.seconds;

  Line line;  // written at once, so that it does not flicker
  if (style_.live) line.add("{}", erase_line);
  line.add("step {}/{}  epoch {}/{}  loss {:#.4g}  {:.0f} images/s", record.step + 1, length_.steps,
           record.epoch + 1, length_.epochs, unsigned_nan(record.loss), record.images_per_second);
  if (const double left = seconds_left(record); left >= 0) {
    line.add("  ");
    add_duration(line, left);
    line.add(" left");
  }
  if (style_.live) {
    line.cut(erase_line.size() + width() - 1);  // the last column would wrap on some terminals
  } else {
    line.add("\n");
  }
  write_all(line.text());
  line_open_ = style_.live;
}

void Terminal::evaluation(const EvaluationRecord& record) noexcept {
  Line line;
  // The last epoch may have been left before its end.
  const std::int64_t epoch = record.step == length_.steps ? length_.epochs : record.epoch;
  line.add("epoch {}/{}  step {}  test loss {:#.4g}  test accuracy {:.4f}", epoch, length_.epochs,
           record.step, unsigned_nan(record.loss), record.accuracy);
  message(line.text());
}

void Terminal::message(std::string_view text) noexcept {
  erase();
  if (style_.colour) write_all(bold);
  write_all(text);
  if (style_.colour) write_all(normal);
  write_all("\n");
}

/// From the mean of the steps of this process; negative as long as there is none.
double Terminal::seconds_left(const StepRecord& record) const noexcept {
  const std::int64_t done = record.step - length_.first_step;
  if (done <= 0) return -1;
  const double mean = (record.seconds - first_seconds_) / static_cast<double>(done);
  const double left = mean * static_cast<double>(length_.steps - record.step - 1);
  return std::isfinite(left) ? left : -1;
}

std::size_t Terminal::width() const noexcept {
  if (style_.columns > 0) return static_cast<std::size_t>(style_.columns);
  winsize size{};
  const bool known = ioctl(descriptor_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

void Terminal::erase() noexcept {
  if (line_open_) write_all(erase_line);
  line_open_ = false;
}

/// A run does not end because nobody can see it: failures are not reported.
void Terminal::write_all(std::string_view text) const noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace carousel
