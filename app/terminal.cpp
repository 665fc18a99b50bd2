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
constexpr std::size_t text_columns = 250;  // no matter how wide a file is

constexpr std::string_view erase_line = "\r\x1b[K";
constexpr std::string_view bold = "\x1b[1m";
constexpr std::string_view normal = "\x1b[0m";

/// "3:02" or "1:03:02"; short enough to take nothing from the heap.
std::string duration(double seconds) {
  const auto total = static_cast<std::int64_t>(std::min(seconds + 0.5, 3.6e8));
  if (total < 3600) return fmt::format("{}:{:02}", total / 60, total % 60);
  return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
}

}  // namespace

/// Text of bounded length; what does not fit is left out.
class Terminal::Line {
 public:
  /// Of text that is shown on so many columns at most, behind `start`.
  Line(std::string_view start, std::size_t columns)
      : limit_(std::min(start.size() + columns, data_.size() - 1)) {
    add("{}", start);
  }
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    const auto result = fmt::format_to_n(data_.data() + size_, data_.size() - size_, format,
                                         std::forward<Args>(args)...);
    size_ = static_cast<std::size_t>(result.out - data_.data());
  }
  /// Adds text that keeps its distance, whole or not at all; then all that follows is left out.
  template <class... Args>
  void add_whole(fmt::format_string<Args...> format, Args&&... args) {
    if (full_) return;
    const std::size_t before = size_;
    add("  ");
    add(format, std::forward<Args>(args)...);
    full_ = size_ > limit_;
    if (full_) size_ = before;
  }
  void cut() { size_ = std::min(size_, limit_); }
  [[nodiscard]] std::string_view text() const { return {data_.data(), size_}; }

 private:
  std::array<char, 256> data_{};
  std::size_t size_ = 0;
  std::size_t limit_;
  bool full_ = false;
};

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
  const std::int64_t steps = record.step + 1;
  const auto more = static_cast<double>(record.step - length_.first_step);
  if (!started_) {
    first_seconds_ = record.seconds;
    evaluated_seconds_ = 0;  // which a restart may begin with
  }
  if (more > 0) step_seconds_ = (record.seconds - first_seconds_ - evaluated_seconds_) / more;
  images_per_second_ = record.images_per_second;
  if (started_ && !is_due(record.seconds) && steps < length_.agenda.total_steps) return;
  started_ = true;

  // An evaluation after this very step is still to come.
  const auto evaluations = static_cast<double>(length_.agenda.evaluations_beyond(record.step));
  Line line = line_of(steps, record.seconds, evaluations * evaluation_seconds());
  line.add_whole("loss {:#.4g}", unsigned_nan(record.loss));
  line.add_whole("lr {:.3g}", record.learning_rate);
  if (length_.tokens > 0)
    line.add_whole("{:.0f} tokens/s", record.images_per_second * length_.tokens);
  else
    line.add_whole("{:.0f} images/s", record.images_per_second);
  line.add_whole("epoch {}/{}", record.epoch + 1, length_.agenda.epochs());
  show(line, record.seconds);
}

void Terminal::evaluating(const EvaluationProgress& progress) noexcept {
  if (progress.done == 0) evaluation_begun_ = progress.seconds;
  const double passed = progress.seconds - evaluation_begun_;
  if (progress.done == progress.samples) {
    evaluation_seconds_ = passed;
    evaluated_seconds_ += passed;
    return;
  }
  if (!is_due(progress.seconds)) return;

  double whole = evaluation_seconds();
  if (evaluation_seconds_ < 0 && progress.done > 0)
    whole = passed * static_cast<double>(progress.samples) / static_cast<double>(progress.done);
  const auto later = static_cast<double>(length_.agenda.evaluations_beyond(progress.step));
  Line line =
      line_of(progress.step, progress.seconds, std::max(0.0, whole - passed) + later * whole);
  line.add_whole("evaluating {} of {}", progress.done, progress.samples);
  show(line, progress.seconds);
}

void Terminal::evaluation(const EvaluationRecord& record) noexcept {
  Line line("", text_columns);
  // The last epoch may have been left before its end.
  const Agenda& agenda = length_.agenda;
  const std::int64_t epoch = record.step == agenda.total_steps ? agenda.epochs() : record.epoch;
  line.add("epoch {}/{}  step {}  test loss {:#.4g}", epoch, agenda.epochs(), record.step,
           unsigned_nan(record.loss));
  if (length_.tells_perplexity) line.add("  test perplexity {:.4g}", std::exp(record.loss));
  for (std::size_t k = 0; k < length_.metrics.size(); ++k)
    line.add("  test {} {:.4f}", length_.metrics[k], record.metrics[k]);
  message(line.text());
}

void Terminal::message(std::string_view text) noexcept {
  erase();
  if (style_.colour) write_all(bold);
  write_all(text);
  if (style_.colour) write_all(normal);
  write_all("\n");
}

void Terminal::lines(std::string_view text) noexcept {
  erase();
  write_all(text);
}

bool Terminal::is_due(double seconds) const noexcept {
  return seconds - shown_seconds_ >= (style_.live ? live_interval : plain_interval);
}

/// How far the run has come; `evaluating` are the seconds that evaluations will take.
Terminal::Line Terminal::line_of(std::int64_t steps, double seconds,
                                 double evaluating) const noexcept {
  // The last column would wrap on some terminals.
  Line line(style_.live ? erase_line : "", style_.live ? width() - 1 : text_columns);
  line.add("step {}/{}", steps, length_.agenda.total_steps);
  const double left =
      step_seconds_ * static_cast<double>(length_.agenda.total_steps - steps) + evaluating;
  if (step_seconds_ >= 0 && std::isfinite(left))
    line.add_whole("{}, {} left", duration(seconds), duration(left));
  else
    line.add_whole("{}", duration(seconds));
  return line;
}

/// Writes a line at once, so that it does not flicker.
void Terminal::show(Line& line, double seconds) noexcept {
  if (style_.live)
    line.cut();
  else
    line.add("\n");
  write_all(line.text());
  line_open_ = style_.live;
  shown_seconds_ = seconds;
}

/// From the last one; before there is one, from how fast steps are, of which a third is forward.
double Terminal::evaluation_seconds() const noexcept {
  if (evaluation_seconds_ >= 0) return evaluation_seconds_;
  if (!(images_per_second_ > 0)) return 0;
  return static_cast<double>(length_.test_samples) / images_per_second_ / 3;
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
