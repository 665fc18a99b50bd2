// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/softmax_cross_entropy.hpp"

#include <limits>

#include "tests/layers/device.hpp"
#include "tests/reference/layers.hpp"

namespace carousel {
namespace {

using test::Numbers;

struct Computed {
  Numbers probabilities;
  Numbers gradient;
  Metrics metrics;
};

Computed compute(const Numbers& logits, const std::vector<int>& labels, double smoothing = 0,
                 bool training = true) {
  const auto n = static_cast<int>(labels.size());
  const SampleShape classes = {static_cast<int>(logits.size()) / n};
  LayerSpec spec;
  spec.kind = kind::SoftmaxCrossEntropy{smoothing};
  spec.inputs = {{-1, classes}};
  spec.output = classes;
  const auto scores = test::to_device(logits);
  const auto device_labels = test::to_device(labels);
  const test::Device<Metrics> metrics("carousel::test::metrics", 1);
  SoftmaxCrossEntropy layer(spec);
  layer.forward(ExecutionSpace(), {.input = {scores.data(), n, classes},
                                   .output = {scores.data(), n, classes},
                                   .labels = device_labels.data(),
                                   .metrics = metrics.data(),
                                   .training = training});
  Computed result{test::to_host(scores), {}, test::to_host(metrics)[0]};
  layer.backward(ExecutionSpace(), {.input = {},
                                    .output = {scores.data(), n, classes},
                                    .d_output = {},
                                    .d_input = {scores.data(), n, classes},
                                    .labels = device_labels.data()});
  result.gradient = test::to_host(scores);
  return result;
}

struct Shape {
  int n;
  int classes;
  double smoothing = 0;
};

class SoftmaxCrossEntropyLayer : public testing::TestWithParam<Shape> {};

TEST_P(SoftmaxCrossEntropyLayer, EqualsPlainLoops) {
  const auto [n, classes, smoothing] = GetParam();
  Numbers logits = test::random_numbers(std::size_t(n) * classes, "logits");
  for (real& value : logits) value *= 40;
  const std::vector<int> labels = test::random_labels(n, classes);
  const Computed computed = compute(logits, labels, smoothing);
  const reference::Loss expected = reference::softmax_cross_entropy(logits, labels, smoothing);
  EXPECT_LE(test::relative_difference(computed.probabilities, expected.probabilities),
            test::rounding);
  EXPECT_LE(
      test::relative_difference(computed.gradient, reference::softmax_cross_entropy_gradient(
                                                       expected.probabilities, labels, smoothing)),
      test::rounding);
  EXPECT_NEAR(computed.metrics.loss, expected.mean, test::rounding * (1 + expected.mean));
  EXPECT_EQ(computed.metrics.correct, expected.correct);
  EXPECT_EQ(computed.metrics.samples, n);
  EXPECT_EQ(computed.metrics.non_finite, 0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, SoftmaxCrossEntropyLayer,
                         testing::Values(Shape{1, 1}, Shape{1, 10}, Shape{16, 10}, Shape{17, 3},
                                         Shape{128, 1000}, Shape{301, 7}, Shape{1, 1, 0.3},
                                         Shape{16, 10, 0.1}, Shape{17, 3, 1},
                                         Shape{33, 1000, 0.1}));

TEST(SoftmaxCrossEntropy, SmoothsNothingInEvaluation) {
  const Numbers logits = test::random_numbers(7 * 5, "logits");
  const std::vector<int> labels = test::random_labels(7, 5);
  EXPECT_EQ(compute(logits, labels, 0.1, false).metrics.loss, compute(logits, labels).metrics.loss);
  EXPECT_NE(compute(logits, labels, 0.1, true).metrics.loss, compute(logits, labels).metrics.loss);
}

TEST(SoftmaxCrossEntropy, CountsTheFirstOfEqualLogits) {
  EXPECT_EQ(compute({1, 2, 2, 0}, {1}).metrics.correct, 1);
  EXPECT_EQ(compute({1, 2, 2, 0}, {2}).metrics.correct, 0);
}

TEST(SoftmaxCrossEntropy, StaysFiniteForLargeLogits) {
  const Computed computed = compute({3e4, -3e4, 0, 1, 2, 3}, {1, 0});
  EXPECT_EQ(computed.metrics.non_finite, 0);
  EXPECT_NEAR(computed.metrics.loss, (6e4 + std::log(1 + std::exp(1) + std::exp(2))) / 2, 1);
}

TEST(SoftmaxCrossEntropy, ReportsNonFiniteLoss) {
  constexpr real nan = std::numeric_limits<real>::quiet_NaN();
  constexpr real infinity = std::numeric_limits<real>::infinity();
  EXPECT_EQ(compute({0, nan, 1, 2}, {0, 1}).metrics.non_finite, 1);
  EXPECT_EQ(compute({nan, nan}, {0}).metrics.non_finite, 1);
  EXPECT_EQ(compute({infinity, 0}, {1}).metrics.non_finite, 1);
  EXPECT_EQ(compute({-infinity, 0}, {0}).metrics.non_finite, 1);
}

}  // namespace
}  // namespace carousel
