// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The largest learning rate with which a rule converges on a quadratic, by the serial oracle,
// against the roots of its recurrence. With curvature h, a = rate h and a share f of micro-batches
// that read theta_t, the others theta_{t-1}, the gradient is h g_t with
// g_t = f theta_t + (1 - f) theta_{t-1}, and of SGD with momentum beta remains
//   theta_{t+1} - theta_t = beta (theta_t - theta_{t-1}) - a g_t,
// Nesterov's having (1 + beta) g_t - beta g_{t-1} in place of g_t. It converges where all roots of
// its characteristic polynomial lie within the unit circle. With prediction theta_{t-1} in g_t is
// theta_{t-1} + kappa (theta_{t-1} - theta_{t-2}). So dp (f = 1) bears 2 (1 + beta) / h
// and v1 (f = 0) only (1 - beta) / h: a half without momentum, a 38th with 0.9. Under v2 stage j
// of N has f = (j + 1) / N, and the first stage holds all others to (1 - beta) N / (N - 1) / h
// where curvatures are equal.

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
  Quadratic(const CyclicRule& rule, Numbers curvatures, const Sgd& sgd = {})
      : curvatures_(std::move(curvatures)) {
    training_.model = model_of(rule.stages);
    training_.rule = rule;
    training_.optimizer.kind = sgd;
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

/// Whether all roots of a polynomial, its highest power first, lie within the unit circle: by the
/// recursion of Schur and Cohn, each step of which leaves one root less.
bool is_stable(std::vector<double> polynomial) {
  while (polynomial.size() > 1) {
    const double first = polynomial.front();
    const double last = polynomial.back();
    if (std::abs(last) >= std::abs(first)) return false;
    const std::size_t degree = polynomial.size() - 1;
    std::vector<double> less(degree);
    for (std::size_t k = 0; k < degree; ++k)
      less[k] = first * polynomial[k] - last * polynomial[degree - k];
    polynomial = std::move(less);
  }
  return true;
}

/// Of theta_{t+1}, theta_t, ... theta_{t-3}.
std::vector<double> recurrence(double fresh, double kappa, double a, const Sgd& sgd) {
  const double b = sgd.momentum;
  std::vector<double> terms = {1, -1 - b, b, 0, 0};
  const double now = sgd.nesterov ? 1 + b : 1;
  const double before = sgd.nesterov ? -b : 0;
  // What is read of theta_t, theta_{t-1} and theta_{t-2}.
  const std::vector<double> reads = {fresh, (1 - fresh) * (1 + kappa), (fresh - 1) * kappa};
  for (std::size_t k = 0; k < reads.size(); ++k) {
    terms[k + 1] += a * now * reads[k];
    terms[k + 2] += a * before * reads[k];
  }
  while (terms.back() == 0) terms.pop_back();
  return terms;
}

/// The largest rate for curvature 1. Every rate below it is stable, too.
double limit(double fresh, const Sgd& sgd, double kappa = 0) {
  constexpr double step = 1e-4;
  double a = step;
  while (is_stable(recurrence(fresh, kappa, a, sgd))) a += step;
  return a - step / 2;
}

/// Of the stage that stands the least.
double theory(const CyclicRule& rule, const Numbers& curvatures, const Sgd& sgd = {}) {
  double least = std::numeric_limits<double>::infinity();
  for (int j = 0; j < rule.stages; ++j) {
    int fresh = 0;
    for (int i = 0; i < rule.micro_batches; ++i) fresh += rule.reads_new(i, j) ? 1 : 0;
    const double share = static_cast<double>(fresh) / rule.micro_batches;
    for (int k = 0; k < 2; ++k)
      least = std::min(
          least, limit(share, sgd, rule.predict) / static_cast<double>(curvatures[2 * j + k]));
  }
  return least;
}

constexpr double near = 0.05;

const std::vector<Sgd> kinds = {{}, {.momentum = 0.9}, {.momentum = 0.9, .nesterov = true}};

TEST(StableRate, IsThatOfGradientDescentWithDelay) {
  for (const Sgd& sgd : kinds) {
    for (const int n : {1, 2, 4, 8}) {
      if (n > 4 && sgd.momentum > 0) continue;
      for (int slack = -1; slack <= n; ++slack) {  // -1: dp
        const CyclicRule rule{slack >= 0, n, n, std::max(slack, 0)};
        Numbers curvatures = test::random_numbers(2 * static_cast<std::size_t>(n), "curvatures");
        for (real& h : curvatures) h += 1;  // 0.5 to 1.5
        const double found = Quadratic(rule, curvatures, sgd).stable_rate();
        EXPECT_NEAR(found / theory(rule, curvatures, sgd), 1, near)
            << "N = " << n << ", slack " << slack << ", momentum " << sgd.momentum;
      }
    }
  }
}

// Where freshness is decided for every pass.
TEST(StableRate, IsThatOfGradientDescentWithDelayInPasses) {
  for (const Sgd& sgd : kinds) {
    for (const int slack : {0, 1, 3, 8}) {
      const CyclicRule rule{true, 8, 4, slack, 2};
      const Numbers ones(8, 1);
      const double found = Quadratic(rule, ones, sgd).stable_rate();
      EXPECT_NEAR(found / theory(rule, ones, sgd), 1, near) << "slack " << slack;
    }
  }
}

TEST(StableRate, IsThatOfGradientDescentWithPrediction) {
  for (const Sgd& sgd : kinds) {
    for (const double kappa : {0.5, 1.0, 2.0}) {
      for (const int n : {1, 4}) {
        const CyclicRule rule{true, n, n, n, 1, kappa};
        const Numbers ones(2 * static_cast<std::size_t>(n), 1);
        const double found = Quadratic(rule, ones, sgd).stable_rate();
        EXPECT_NEAR(found / theory(rule, ones, sgd), 1, near)
            << "kappa = " << kappa << ", N = " << n << ", momentum " << sgd.momentum;
      }
    }
  }
}

// The closed forms, which the polynomials are held against.
TEST(StableRate, WithMomentumIsTwiceOneAndItForDpAndWhatItLeavesOfOneForV1) {
  for (const double b : {0.0, 0.5, 0.9}) {
    EXPECT_NEAR(limit(1, {.momentum = b}), 2 * (1 + b), 1e-3);
    EXPECT_NEAR(limit(0, {.momentum = b}), 1 - b, 1e-3);
    for (const double fresh : {0.25, 0.5})
      EXPECT_NEAR(limit(fresh, {.momentum = b}), (1 - b) / (1 - fresh), 1e-3);
  }
  // Nesterov's momentum takes back a part of the delay.
  EXPECT_NEAR(limit(0, {.momentum = 0.9, .nesterov = true}), 0.253, 1e-3);
  // So does prediction; without momentum it costs.
  EXPECT_NEAR(limit(0, {.momentum = 0.9}, 1), 0.270, 1e-3);
  EXPECT_NEAR(limit(0, {.momentum = 0.9, .nesterov = true}, 0.5), 0.386, 1e-3);
  EXPECT_NEAR(limit(0, {}, 1), 0.618, 1e-3);
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
