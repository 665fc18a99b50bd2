// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The largest learning rate with which a rule converges on a quadratic, by the serial oracle, and
// what gradient descent with a delay says: with curvature h and a share f of micro-batches that
// read theta_t, the others theta_{t-1}, a = rate h, theta_{t+1} = theta_t - a (f theta_t + (1 - f)
// theta_{t-1}) has the characteristic polynomial z^2 - (1 - a f) z + a (1 - f), whose roots lie
// within the unit circle (Jury's criterion) for a < 1 / (1 - f) and a < 2 / (2 f - 1). dp has f = 1
// and 2 / h; v1 f = 0 and 1 / h; under v2 stage j of N has f = (j + 1) / N, and the first stage
// holds all others to N / (N - 1) / h where curvatures are equal.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/model/builder.hpp"
#include "tests/layers/device.hpp"
#include "tests/reference/serial_trainer.hpp"

namespace carousel::reference {
namespace {

/// As many numbers in every stage, each with a curvature of its own.
class Quadratic {
 public:
  Quadratic(const CyclicRule& rule, Numbers curvatures) : curvatures_(std::move(curvatures)) {
    training_.model = model_of(rule.stages);
    training_.rule = rule;
    for (int j = 0; j < rule.stages; ++j) training_.stage_begin.push_back(j);
    training_.gradient = [this](const Numbers& theta) {
      Numbers gradient = theta;
      for (std::size_t k = 0; k < gradient.size(); ++k) gradient[k] *= curvatures_[k];
      return gradient;
    };
  }
  Quadratic(const Quadratic&) = delete;
  Quadratic& operator=(const Quadratic&) = delete;
  ~Quadratic() = default;

  /// Found by halving an interval, to 1 in 1,000.
  [[nodiscard]] double stable_rate() {
    double stable = 0;
    double unstable = 8;
    while (unstable - stable > stable / 1000) {
      const double rate = (stable + unstable) / 2;
      (converges(rate) ? stable : unstable) = rate;
    }
    return stable;
  }

 private:
  static Model model_of(int stages) {
    ModelBuilder builder("quadratic", {1}, 1);
    for (int j = 0; j < stages; ++j)
      builder.add("linear", "stage" + std::to_string(j), {{"features", 1}});
    return builder.model();
  }
  [[nodiscard]] bool converges(double rate) {
    constexpr std::int64_t steps = 3000;
    training_.learning_rate = [rate](std::int64_t) { return rate; };
    const SerialResult result =
        train_serially(training_, {Numbers(curvatures_.size(), 1), {}}, steps);
    double largest = 0;
    for (const real theta : result.states.back().parameters) {
      if (!std::isfinite(theta)) return false;
      largest = std::max(largest, std::abs(static_cast<double>(theta)));
    }
    return largest < 1;
  }

  Numbers curvatures_;
  SerialTraining training_;
};

double limit(double fresh, double curvature) {
  double limit = std::numeric_limits<double>::infinity();
  if (fresh < 1) limit = std::min(limit, 1 / (1 - fresh));
  if (fresh > 0.5) limit = std::min(limit, 2 / (2 * fresh - 1));
  return limit / curvature;
}

/// Of the stage that stands the least.
double theory(const CyclicRule& rule, const Numbers& curvatures) {
  double least = std::numeric_limits<double>::infinity();
  for (int j = 0; j < rule.stages; ++j) {
    int fresh = 0;
    for (int i = 0; i < rule.micro_batches; ++i) fresh += rule.reads_new(i, j) ? 1 : 0;
    const double share = static_cast<double>(fresh) / rule.micro_batches;
    for (int k = 0; k < 2; ++k)
      least = std::min(least, limit(share, static_cast<double>(curvatures[2 * j + k])));
  }
  return least;
}

constexpr double near = 0.05;

TEST(StableRate, IsThatOfGradientDescentWithDelay) {
  for (const int n : {1, 2, 4, 8}) {
    for (int slack = -1; slack <= n; ++slack) {  // -1: dp
      const CyclicRule rule{slack >= 0, n, n, std::max(slack, 0)};
      Numbers curvatures = test::random_numbers(2 * static_cast<std::size_t>(n), "curvatures");
      for (real& h : curvatures) h += 1;  // 0.5 to 1.5
      const double found = Quadratic(rule, curvatures).stable_rate();
      EXPECT_NEAR(found / theory(rule, curvatures), 1, near) << "N = " << n << ", slack " << slack;
    }
  }
}

TEST(StableRate, OfEqualCurvaturesIsTwoOneAndBetween) {
  for (const int n : {2, 4, 8}) {
    const Numbers ones(2 * static_cast<std::size_t>(n), 1);
    EXPECT_NEAR(Quadratic({false, n, n, 0}, ones).stable_rate(), 2, 2 * near);
    EXPECT_NEAR(Quadratic({true, n, n, n}, ones).stable_rate(), 1, near);
    const double v2 = static_cast<double>(n) / (n - 1);
    EXPECT_NEAR(Quadratic({true, n, n, 0}, ones).stable_rate(), v2, v2 * near);
  }
}

}  // namespace
}  // namespace carousel::reference
