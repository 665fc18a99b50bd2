// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/op.hpp"

#include <limits>

#include "core/model/kernels.hpp"
#include "layers/factory.hpp"
#include "layers/softmax_cross_entropy/op.hpp"
#include "tests/layers/device.hpp"
#include "tests/layers/stored.hpp"
#include "tests/reference/layers.hpp"

namespace carousel {
namespace {

using test::Numbers;

struct Computed {
  Numbers logits;  // as forward left them
  Numbers gradient;
  double loss = 0;
  double non_finite = 0;
  double samples = 0;
  double correct = 0;
};

Computed compute(const Numbers& logits, const std::vector<int>& labels, double smoothing = 0,
                 bool training = true) {
  const auto n = static_cast<int>(labels.size());
  const SampleShape classes = {static_cast<int>(logits.size()) / n};
  LayerSpec spec;
  spec.kind = &op_named("softmax_cross_entropy");
  spec.attributes = op::SoftmaxCrossEntropy{smoothing};
  spec.inputs = {{-1, classes}};
  spec.output = classes;
  spec.target = classes.channels;
  const auto scores = test::to_device(logits);
  const auto device_labels = test::to_device(labels);
  const test::Device<double> report("carousel::test::report", report_head + 1);
  spec.metrics = {&metric_named("accuracy")};
  const std::unique_ptr<Layer> layer = make_layer(spec, n, {});
  layer->forward(ExecutionSpace(), {.input = {scores.data(), n, classes},
                                    .output = {scores.data(), n, classes},
                                    .targets = device_labels.data(),
                                    .report = report.data(),
                                    .training = training});
  const std::vector<double> said = test::to_host(report);
  Computed result{test::to_host(scores), {}, said[0], said[1], said[2], said[3]};
  layer->backward(ExecutionSpace(), {.input = {},
                                     .output = {scores.data(), n, classes},
                                     .d_output = {},
                                     .d_input = {scores.data(), n, classes},
                                     .targets = device_labels.data()});
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
  EXPECT_EQ(computed.logits, logits);
  EXPECT_LE(
      test::relative_difference(computed.gradient, reference::softmax_cross_entropy_gradient(
                                                       expected.probabilities, labels, smoothing)),
      test::rounding);
  EXPECT_NEAR(computed.loss, expected.mean, test::rounding * (1 + expected.mean));
  EXPECT_EQ(computed.correct, expected.correct);
  EXPECT_EQ(computed.samples, n);
  EXPECT_EQ(computed.non_finite, 0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, SoftmaxCrossEntropyLayer,
                         testing::Values(Shape{1, 1}, Shape{1, 10}, Shape{16, 10}, Shape{17, 3},
                                         Shape{128, 1000}, Shape{301, 7}, Shape{1, 1, 0.3},
                                         Shape{16, 10, 0.1}, Shape{17, 3, 1},
                                         Shape{33, 1000, 0.1}));

/// The gradient in bf16 of logits in bf16, by the kernels that a model gets.
Numbers gradient_in_bf16(const Numbers& logits, const std::vector<int>& labels, double smoothing) {
  const auto n = static_cast<int>(labels.size());
  const auto classes = static_cast<int>(logits.size()) / n;
  const Model model = choose_kernels(
      build_mlp({4, classes}, {4}, classes, 0, {.arguments = {{"label_smoothing", smoothing}}}),
      {.type = DataType::bfloat16});
  const LayerSpec& spec = model.layers.back();
  EXPECT_EQ(spec.workspace_bytes(n), 0) << "logits are copied";
  const auto scores = test::to_device(test::stored(logits, DataType::bfloat16));
  auto* at = reinterpret_cast<real*>(scores.data());
  const auto device_labels = test::to_device(labels);
  const auto layer = make_layer(spec, n, {});
  layer->backward(ExecutionSpace(), {.input = {},
                                     .output = {at, n, {classes}},
                                     .d_output = {},
                                     .d_input = {at, n, {classes}},
                                     .targets = device_labels.data()});
  return test::restored(test::to_host(scores), DataType::bfloat16);
}

/// [classes] the same of one sample in float64, where nothing cancels either.
std::vector<double> exact_gradient(const real* logits, int classes, int label, double smoothing) {
  double total = 0;
  for (int c = 0; c < classes; ++c) total += std::exp(double(logits[c]) - logits[label]);
  std::vector<double> gradient(classes);
  double others = 0;
  for (int c = 0; c < classes; ++c) {
    if (c == label) continue;
    gradient[c] = std::exp(double(logits[c]) - logits[label]) / total - smoothing / classes;
    others += gradient[c];
  }
  gradient[label] = -others;
  return gradient;
}

TEST(SoftmaxCrossEntropy, GradientInBf16IsThatOfFloat64) {
  for (const double smoothing : {0.0, 0.1}) {
    for (const int classes : {2, 3, 10, 1000}) {
      // Margins of the label from -30 to 30, in steps that bf16 has.
      constexpr int n = 121;
      Numbers logits = test::random_numbers(std::size_t(n) * classes, "logits");
      const std::vector<int> labels = test::random_labels(n, classes);
      for (int i = 0; i < n; ++i) logits[i * classes + labels[i]] = real(i - 60) / 2;
      logits = test::rounded_to(logits, DataType::bfloat16);
      const Numbers found = gradient_in_bf16(logits, labels, smoothing);
      for (int i = 0; i < n; ++i) {
        const std::vector<double> exact =
            exact_gradient(&logits[i * classes], classes, labels[i], smoothing);
        double largest = 0;
        for (const double x : exact) largest = std::max(largest, std::abs(x));
        double sum = 0;
        for (int c = 0; c < classes; ++c) {
          const double x = n * double(found[i * classes + c]);
          EXPECT_NEAR(x, exact[c], largest / 256)
              << "margin " << (i - 60) / 2.0 << ", class " << c << " of " << classes;
          sum += x;
        }
        EXPECT_LE(std::abs(sum), largest / 256 * (1 + std::sqrt(classes))) << "row " << i;
      }
    }
  }
}

TEST(SoftmaxCrossEntropy, SmoothsNothingInEvaluation) {
  const Numbers logits = test::random_numbers(7 * 5, "logits");
  const std::vector<int> labels = test::random_labels(7, 5);
  EXPECT_EQ(compute(logits, labels, 0.1, false).loss, compute(logits, labels).loss);
  EXPECT_NE(compute(logits, labels, 0.1, true).loss, compute(logits, labels).loss);
}

TEST(SoftmaxCrossEntropy, CountsTheFirstOfEqualLogits) {
  EXPECT_EQ(compute({1, 2, 2, 0}, {1}).correct, 1);
  EXPECT_EQ(compute({1, 2, 2, 0}, {2}).correct, 0);
}

TEST(SoftmaxCrossEntropy, StaysFiniteForLargeLogits) {
  const Computed computed = compute({3e4, -3e4, 0, 1, 2, 3}, {1, 0});
  EXPECT_EQ(computed.non_finite, 0);
  EXPECT_NEAR(computed.loss, (6e4 + std::log(1 + std::exp(1) + std::exp(2))) / 2, 1);
}

TEST(SoftmaxCrossEntropy, ReportsNonFiniteLoss) {
  constexpr real nan = std::numeric_limits<real>::quiet_NaN();
  constexpr real infinity = std::numeric_limits<real>::infinity();
  EXPECT_EQ(compute({0, nan, 1, 2}, {0, 1}).non_finite, 1);
  EXPECT_EQ(compute({nan, nan}, {0}).non_finite, 1);
  EXPECT_EQ(compute({infinity, 0}, {1}).non_finite, 1);
  EXPECT_EQ(compute({-infinity, 0}, {0}).non_finite, 1);
}

}  // namespace
}  // namespace carousel
