// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What a terminal and what a file see of a run, byte for byte.

#include "app/terminal.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <limits>
#include <string>

namespace carousel {
namespace {

using ::testing::HasSubstr;

/// A pipe whose written end a Terminal gets.
class Output {
 public:
  Output() { EXPECT_EQ(pipe2(ends_.data(), O_NONBLOCK), 0); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() {
    close(ends_[0]);
    close(ends_[1]);
  }
  [[nodiscard]] int descriptor() const { return ends_[1]; }
  /// What was written since the last call.
  [[nodiscard]] std::string text() const {
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t n = 0; (n = read(ends_[0], buffer.data(), buffer.size())) > 0;)
      text.append(buffer.data(), static_cast<std::size_t>(n));
    return text;
  }

 private:
  std::array<int, 2> ends_{};
};

const RunLength length = {
    .agenda = {.total_steps = 400, .steps_per_epoch = 20, .evaluation_epochs = 10},
    .test_samples = 360,
    .metrics = {"accuracy"}};

StepRecord record(std::int64_t step, double seconds) {
  return {.step = step,
          .epoch = step / 20,
          .loss = 0.5,
          .metrics = {0.9},
          .learning_rate = 0.1,
          .seconds = seconds,
          .images_per_second = 1234.4};
}

TEST(Terminal, CountsTokensOfTexts) {
  const Output output;
  RunLength of_text = length;
  of_text.tokens = 64;
  of_text.tells_perplexity = true;
  Terminal terminal(output.descriptor(), {}, of_text);
  terminal.step(record(0, 1));
  EXPECT_THAT(output.text(), HasSubstr("lr 0.1  79002 tokens/s  epoch"));
  terminal.evaluation({.step = 20, .epoch = 1, .loss = 0.5, .metrics = {0.98}});
  EXPECT_THAT(output.text(), HasSubstr("test loss 0.5000  test perplexity 1.649  test accuracy"));
}

TEST(Terminal, WritesPlainLinesEveryFewSeconds) {
  const Output output;
  Terminal terminal(output.descriptor(), {}, length);
  terminal.step(record(0, 1));
  EXPECT_EQ(output.text(), "step 1/400  0:01  loss 0.5000  lr 0.1  1234 images/s  epoch 1/20\n");
  terminal.step(record(1, 2));
  EXPECT_EQ(output.text(), "");
  terminal.step(record(50, 6));
  EXPECT_EQ(output.text(),
            "step 51/400  0:06, 0:35 left  loss 0.5000  lr 0.1  1234 images/s  epoch 3/20\n");
  terminal.step(record(399, 6.1));
  EXPECT_THAT(output.text(), HasSubstr("step 400/400"));
  terminal.evaluation({.step = 400, .epoch = 20, .loss = 0.1, .metrics = {0.98}});
  EXPECT_EQ(output.text(), "epoch 20/20  step 400  test loss 0.1000  test accuracy 0.9800\n");
}

TEST(Terminal, RewritesItsLineTenTimesASecond) {
  const Output output;
  {
    Terminal terminal(output.descriptor(), {.live = true, .colour = false, .columns = 30}, length);
    terminal.step(record(0, 1));
    EXPECT_EQ(output.text(), "\r\x1b[Kstep 1/400  0:01  loss 0.5000");
    terminal.step(record(1, 1.05));
    EXPECT_EQ(output.text(), "");
    terminal.step(record(2, 1.2));
    EXPECT_THAT(output.text(), HasSubstr("step 3/400"));
    terminal.evaluation({.step = 20, .epoch = 1, .loss = 0.1, .metrics = {0.98}});
    // Lines that stay are whole.
    EXPECT_EQ(output.text(),
              "\r\x1b[Kepoch 1/20  step 20  test loss 0.1000  test accuracy 0.9800\n");
    terminal.step(record(20, 2));
    EXPECT_NE(output.text(), "");
  }
  EXPECT_EQ(output.text(), "\r\x1b[K");  // erased at the end
}

TEST(Terminal, LeavesOutWhatDoesNotFitWhole) {
  const Output output;
  Terminal terminal(output.descriptor(), {.live = true, .colour = false, .columns = 64}, length);
  terminal.step(record(0, 1));
  // 64 columns would do, but the last one stays free.
  EXPECT_EQ(output.text(), "\r\x1b[Kstep 1/400  0:01  loss 0.5000  lr 0.1  1234 images/s");
}

TEST(Terminal, ShowsHowFarAnEvaluationIs) {
  const Output output;
  Terminal terminal(output.descriptor(), {.live = true, .colour = false, .columns = 80}, length);
  terminal.step(record(0, 1));
  terminal.step(record(199, 200));
  (void)output.text();
  terminal.evaluating({.step = 200, .done = 0, .samples = 360, .seconds = 200});
  EXPECT_EQ(output.text(), "");
  terminal.evaluating({.step = 200, .done = 90, .samples = 360, .seconds = 210});
  // 200 steps of a second, 30 s of this evaluation and another one of 40 s.
  EXPECT_EQ(output.text(), "\r\x1b[Kstep 200/400  3:30, 4:30 left  evaluating 90 of 360");
  terminal.evaluating({.step = 200, .done = 91, .samples = 360, .seconds = 210.05});
  EXPECT_EQ(output.text(), "");
  terminal.evaluating({.step = 200, .done = 359, .samples = 360, .seconds = 250});
  EXPECT_THAT(output.text(), HasSubstr("4:10, 4:10 left  evaluating 359 of 360"));
  terminal.evaluation({.step = 200, .epoch = 10, .loss = 0.1, .metrics = {0.98}});
  EXPECT_THAT(output.text(), HasSubstr("\r\x1b[Kepoch 10/20"));
}

TEST(Terminal, TimeLeftHasTheEvaluationsToCome) {
  const Output output;
  Terminal terminal(output.descriptor(), {}, length);
  terminal.step(record(0, 0));
  // Two of 360 samples, three times as fast as training.
  StepRecord slow = record(100, 100);
  slow.images_per_second = 1;
  terminal.step(slow);
  EXPECT_THAT(output.text(), HasSubstr("1:40, 8:59 left"));  // 299 + 2 * 120 s
  terminal.step(record(199, 199));
  terminal.evaluating({.step = 200, .done = 0, .samples = 360, .seconds = 200});
  terminal.evaluating({.step = 200, .done = 360, .samples = 360, .seconds = 230});
  (void)output.text();
  // From now on as the last one, whose time does not make steps slower.
  terminal.step(record(200, 230));
  EXPECT_THAT(output.text(), HasSubstr("3:50, 3:49 left"));  // 199 + 30 s
  terminal.step(record(399, 429));
  EXPECT_THAT(output.text(), HasSubstr("7:09, 0:30 left"));
}

TEST(Terminal, SurvivesStrangeNumbers) {
  const Output output;
  Terminal terminal(output.descriptor(), {}, length);
  StepRecord strange = record(0, 0);
  strange.loss = std::numeric_limits<double>::quiet_NaN();
  strange.images_per_second = std::numeric_limits<double>::infinity();
  terminal.step(strange);
  EXPECT_THAT(output.text(), HasSubstr("loss nan  lr 0.1  inf images/s"));
  strange.loss = 1e300;
  strange.step = 399;
  terminal.step(strange);
  EXPECT_LE(output.text().size(), 256U);
}

TEST(Terminal, NarrowTerminalsGetLittle) {
  const Output output;
  Terminal terminal(output.descriptor(), {.live = true, .colour = false, .columns = 1}, length);
  terminal.step(record(0, 0));
  EXPECT_EQ(output.text(), "\r\x1b[K");
}

TEST(Terminal, ColoursOnlyWhereWelcome) {
  const Output output;
  Terminal terminal(output.descriptor(), {.live = true, .colour = true, .columns = 80}, length);
  terminal.message("done");
  EXPECT_EQ(output.text(), "\x1b[1mdone\x1b[0m\n");

  EXPECT_FALSE(TerminalStyle::of(output.descriptor()).live);
  EXPECT_FALSE(TerminalStyle::of(output.descriptor()).colour);

  const int pseudo = posix_openpt(O_RDWR | O_NOCTTY);
  if (pseudo < 0) GTEST_SKIP() << "no pseudo terminals here";
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  EXPECT_TRUE(TerminalStyle::of(pseudo).live);
  EXPECT_TRUE(TerminalStyle::of(pseudo).colour);
  setenv("NO_COLOR", "1", 1);
  EXPECT_TRUE(TerminalStyle::of(pseudo).live);
  EXPECT_FALSE(TerminalStyle::of(pseudo).colour);
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(TerminalStyle::of(pseudo).live);
  close(pseudo);
}

}  // namespace
}  // namespace carousel
