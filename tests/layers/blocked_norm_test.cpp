// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Batch norms and poolings in blocks of channels, alone and with what they are fused with, against
// naive loops.

#include "core/base/check.hpp"
#include "core/base/vectors.hpp"
#include "core/model/kernels.hpp"
#include "tests/layers/single_layer.hpp"
#include "tests/reference/image_layers.hpp"

namespace carousel {
namespace {

using test::Numbers;
using test::SingleLayer;

constexpr int n = 3;
const SampleShape shape = {2 * vector_block, 5, 7};

/// Numbers of images whose channels differ in mean and width; one has few bits for what differs.
Numbers uneven_numbers() {
  Numbers x = test::random_numbers(n * shape.size(), "x");
  const std::size_t plane = std::size_t(shape.height) * shape.width;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const auto channel = static_cast<real>(k / plane % shape.channels);
    x[k] = x[k] * (1 + channel / 4) + channel - 2;
  }
  return x;
}

LayerSpec norm_spec(const LayerKind& kind, const Window& window = {}) {
  LayerSpec spec = test::image_layer(kind, shape, shape.channels, window);
  spec.inputs[0].format.block = vector_block;
  const bool has_norm = !spec.is<kind::MaxPool>() || spec.as<kind::MaxPool>().normalises;
  if (has_norm) {
    spec.parameters = {{"weight", {shape.channels}}, {"bias", {shape.channels}}};
    spec.buffers = {{"running_mean", {shape.channels}}, {"running_var", {shape.channels}}};
  }
  if (spec.is<kind::BatchNorm>() && spec.as<kind::BatchNorm>().adds)
    spec.inputs.push_back(spec.inputs[0]);
  return with_blocks(spec, {.block = vector_block});
}

Numbers rounded(const std::vector<double>& numbers) {
  return {numbers.begin(), numbers.end()};
}

class BlockedNorm : public testing::TestWithParam<kind::BatchNorm> {
 protected:
  [[nodiscard]] Numbers expected(const reference::Statistics& statistics) const {
    Numbers y = reference::batch_norm(n, shape, x_, statistics, w_, b_);
    if (GetParam().adds) y = test::sum(y, second_);
    if (GetParam().rectifies) {
      for (real& number : y) number = std::max(number, real(0));
    }
    return y;
  }

  const Numbers x_ = uneven_numbers();
  const Numbers second_ = test::random_numbers(x_.size(), "second");
  const Numbers d_y_ = test::random_numbers(x_.size(), "d_y");
  const Numbers w_ = test::random_numbers(shape.channels, "w");
  const Numbers b_ = test::random_numbers(shape.channels, "b");
  const double tolerance_ = (4 + shape.channels) * test::rounding;
};

TEST_P(BlockedNorm, Forward) {
  const reference::Statistics running = {
      std::vector<double>(shape.channels, 0.25), std::vector<double>(shape.channels, 4), {}};
  SingleLayer layer(norm_spec(GetParam()), n, test::joined(w_, b_),
                    test::joined(rounded(running.mean), rounded(running.variance)));
  const auto statistics = reference::statistics(n, shape, x_);
  EXPECT_LE(test::relative_difference(layer.forward(x_, second_), expected(statistics)),
            tolerance_);
  EXPECT_LE(test::relative_difference(layer.forward(x_, second_, false), expected(running)),
            tolerance_);
}

TEST_P(BlockedNorm, Backward) {
  SingleLayer layer(norm_spec(GetParam()), n, test::joined(w_, b_));
  const auto statistics = reference::statistics(n, shape, x_);
  const Numbers y = layer.forward(x_, second_);
  Numbers d = d_y_;
  if (GetParam().rectifies) {
    for (std::size_t k = 0; k < y.size(); ++k) d[k] = y[k] > 0 ? d[k] : 0;
  }
  const auto gradients = reference::batch_norm_gradients(n, shape, x_, w_, d);
  EXPECT_LE(test::relative_difference(layer.backward(d_y_), gradients.d_x), tolerance_);
  // What is left is the gradient of the second input.
  EXPECT_EQ(layer.d_output(), GetParam().adds ? d : d_y_);
  EXPECT_LE(
      test::relative_difference(layer.d_parameters(), test::joined(gradients.d_w, gradients.d_b)),
      tolerance_);
  EXPECT_LE(
      test::relative_difference(
          layer.statistics(), test::joined(rounded(statistics.mean), rounded(statistics.unbiased))),
      test::rounding);
  const Numbers others = test::random_numbers(x_.size(), "others");
  EXPECT_LE(
      test::relative_difference(layer.backward(d_y_, others), test::sum(others, gradients.d_x)),
      tolerance_);
}

INSTANTIATE_TEST_SUITE_P(Kinds, BlockedNorm,
                         testing::Values(kind::BatchNorm{false, false},
                                         kind::BatchNorm{false, true}, kind::BatchNorm{true, true},
                                         kind::BatchNorm{true, false}),
                         [](const auto& instance) {
                           return fmt::format("{}{}", instance.param.adds ? "adds" : "alone",
                                              instance.param.rectifies ? "rectifies" : "");
                         });

class BlockedMaxPool : public testing::TestWithParam<Window> {};

TEST_P(BlockedMaxPool, Alone) {
  const LayerSpec spec = norm_spec(kind::MaxPool{GetParam()}, GetParam());
  const reference::Windows windows = {n, spec.input(), spec.output, GetParam()};
  const Numbers x = uneven_numbers();
  const Numbers d_y = test::random_numbers(n * spec.output.size(), "d_y");
  SingleLayer layer(spec, n);
  EXPECT_EQ(layer.forward(x), reference::max_pool(windows, x));
  const Numbers d_x = reference::max_pool_gradient(windows, x, d_y);
  EXPECT_LE(test::relative_difference(layer.backward(d_y), d_x), test::rounding);
  const Numbers others = test::random_numbers(x.size(), "others");
  EXPECT_LE(test::relative_difference(layer.backward(d_y, others), test::sum(others, d_x)),
            test::rounding);
}

TEST_P(BlockedMaxPool, NormalisesOnTheWay) {
  const LayerSpec spec = norm_spec(kind::MaxPool{GetParam(), true}, GetParam());
  const reference::Windows windows = {n, spec.input(), spec.output, GetParam()};
  const Numbers x = uneven_numbers();
  const Numbers w = test::random_numbers(shape.channels, "w");
  const Numbers b = test::random_numbers(shape.channels, "b");
  const Numbers d_y = test::random_numbers(n * spec.output.size(), "d_y");
  const double tolerance = (4 + shape.channels) * test::rounding;
  SingleLayer layer(spec, n, test::joined(w, b));
  Numbers a = reference::batch_norm(n, shape, x, reference::statistics(n, shape, x), w, b);
  for (real& number : a) number = std::max(number, real(0));
  EXPECT_LE(test::relative_difference(layer.forward(x), reference::max_pool(windows, a)),
            tolerance);
  Numbers d_a = reference::max_pool_gradient(windows, a, d_y);
  for (std::size_t k = 0; k < a.size(); ++k) d_a[k] = a[k] > 0 ? d_a[k] : 0;
  const auto expected = reference::batch_norm_gradients(n, shape, x, w, d_a);
  EXPECT_LE(test::relative_difference(layer.backward(d_y), expected.d_x), tolerance);
  EXPECT_LE(
      test::relative_difference(layer.d_parameters(), test::joined(expected.d_w, expected.d_b)),
      tolerance);
}

// Not a number is larger than all numbers, as in PyTorch.
TEST(BlockedMaxPool, LetsNotANumberPass) {
  const Window window = {2, 2, 0};
  const LayerSpec spec = norm_spec(kind::MaxPool{window}, window);
  Numbers x = uneven_numbers();
  x[0] = x[9] = NAN;
  const Numbers y = SingleLayer(spec, n).forward(x);
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_FALSE(std::isnan(y[2]));
}

INSTANTIATE_TEST_SUITE_P(Windows, BlockedMaxPool,
                         testing::Values(Window{3, 2, 1}, Window{2, 2, 0}, Window{3, 1, 1},
                                         Window{2, 3, 0}),
                         [](const auto& instance) {
                           return fmt::format("k{}s{}p{}", instance.param.kernel,
                                              instance.param.stride, instance.param.padding);
                         });

TEST(BlockedAveragePool, TakesWholeImages) {
  const Window window = {.kernel = 0};
  LayerSpec spec = test::image_layer(kind::AveragePool{window}, shape, shape.channels, window);
  spec.inputs[0].format.block = vector_block;
  spec = with_blocks(spec, {.block = vector_block});
  ASSERT_EQ(spec.output_format, TensorFormat{});
  const reference::Windows windows = {n, spec.input(), spec.output, window};
  const Numbers x = uneven_numbers();
  const Numbers d_y = test::random_numbers(n * spec.output.size(), "d_y");
  SingleLayer layer(spec, n);
  EXPECT_LE(test::relative_difference(layer.forward(x), reference::average_pool(windows, x)),
            test::rounding);
  const Numbers d_x = reference::average_pool_gradient(windows, d_y);
  EXPECT_LE(test::relative_difference(layer.backward(d_y), d_x), test::rounding);
  const Numbers others = test::random_numbers(x.size(), "others");
  EXPECT_LE(test::relative_difference(layer.backward(d_y, others), test::sum(others, d_x)),
            test::rounding);
}

}  // namespace
}  // namespace carousel
