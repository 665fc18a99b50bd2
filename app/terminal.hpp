// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a person sees of a running training: one live line on a terminal, plain lines in a file. It
// only formats records that it is handed; one rank owns one, and nothing in step() allocates.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/agenda.hpp"
#include "core/train/records.hpp"

namespace carousel {

/// How long the run is going to be.
struct RunLength {
  Agenda agenda;
  std::int64_t test_samples = 0;
  std::int64_t first_step = 0;  // of this process; more than 0 after a restart
  std::vector<std::string> metrics = {};
  int tokens = 0;  // of a sample of text; 0: samples are counted
  bool tells_perplexity = false;
};

/// What the output can show.
struct TerminalStyle {
  bool live = false;    // lines can be rewritten
  bool colour = false;  // escape sequences for colour are welcome
  int columns = 0;      // width of lines; 0: ask the terminal every time

  /// Of an open file: live on a terminal, colour unless NO_COLOR is set (no-color.org).
  [[nodiscard]] static TerminalStyle of(int descriptor);
};

class Terminal {
 public:
  Terminal(int descriptor, const TerminalStyle& style, const RunLength& length);
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  /// Shows a training step, or leaves it out: a live line changes at most ten times a second, a
  /// plain one comes every few seconds.
  void step(const StepRecord& record) noexcept;
  /// Shows how far an evaluation has come, as often as steps.
  void evaluating(const EvaluationProgress& progress) noexcept;
  /// Shows the result of an evaluation on a line that stays.
  void evaluation(const EvaluationRecord& record) noexcept;
  /// Shows a message on a line that stays; longer than a line of the terminal it is cut.
  void message(std::string_view text) noexcept;
  /// Shows whole lines as they are.
  void lines(std::string_view text) noexcept;

 private:
  class Line;

  [[nodiscard]] bool is_due(double seconds) const noexcept;
  [[nodiscard]] Line line_of(std::int64_t steps, double seconds, double evaluating) const noexcept;
  void show(Line& line, double seconds) noexcept;
  [[nodiscard]] double evaluation_seconds() const noexcept;
  [[nodiscard]] std::size_t width() const noexcept;
  void erase() noexcept;
  void write_all(std::string_view text) const noexcept;

  int descriptor_;
  TerminalStyle style_;
  RunLength length_;
  bool line_open_ = false;  // a live line stands on the terminal
  bool started_ = false;
  double first_seconds_ = 0;        // when the first step of this process was done
  double shown_seconds_ = 0;        // when steps or an evaluation were last shown
  double step_seconds_ = -1;        // mean of the steps of this process; negative: unknown
  double images_per_second_ = 0;    // of the last steps
  double evaluation_begun_ = 0;     // when the last evaluation began
  double evaluation_seconds_ = -1;  // that it took; negative: unknown
  double evaluated_seconds_ = 0;    // that all of them took
};

}  // namespace carousel
