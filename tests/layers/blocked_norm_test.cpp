// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Batch norms and poolings in blocks of channels, or with all of them side by side, alone and with
// what they are fused with, against naive loops.

#include "core/base/check.hpp"
#include "core/base/vectors.hpp"
#include "core/model/kernels.hpp"
#include "layers/average_pool/op.hpp"
#include "layers/batch_norm/op.hpp"
#include "layers/max_pool/op.hpp"
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

/// A block of 0 is all channels.
LayerSpec norm_spec(const char* kind, const std::any& attributes, int block,
                    const Window& window = {}) {
  LayerSpec spec = test::image_layer(kind, attributes, shape, shape.channels, window);
  spec.inputs[0].format.block = block == 0 ? shape.channels : block;
  const bool has_norm = !spec.is("max_pool") || spec.as<op::MaxPool>().normalises;
  if (has_norm) {
    spec.parameters = {{"weight", {shape.channels}}, {"bias", {shape.channels}}};
    spec.buffers = {{"running_mean", {shape.channels}}, {"running_var", {shape.channels}}};
  }
  if (spec.is("batch_norm") && spec.as<op::BatchNorm>().adds) spec.inputs.push_back(spec.inputs[0]);
  choose_kernels(spec, {.block = block});
  return spec;
}

Numbers rounded(const std::vector<double>& numbers) {
  return {numbers.begin(), numbers.end()};
}

/// Where the numbers of a layer lie.
std::string name_of(int block) {
  return block == 0 ? "ChannelsLast" : "Blocks";
}

class BlockedNorm : public testing::TestWithParam<std::tuple<op::BatchNorm, int>> {
 protected:
  [[nodiscard]] static op::BatchNorm kind() { return std::get<0>(GetParam()); }
  [[nodiscard]] static LayerSpec spec() {
    return norm_spec("batch_norm", kind(), std::get<1>(GetParam()));
  }
  [[nodiscard]] Numbers expected(const reference::Statistics& statistics) const {
    Numbers y = reference::batch_norm(n, shape, x_, statistics, w_, b_);
    if (kind().adds) y = test::sum(y, second_);
    if (kind().rectifies) {
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
  SingleLayer layer(spec(), n, test::joined(w_, b_),
                    test::joined(rounded(running.mean), rounded(running.variance)));
  const auto statistics = reference::statistics(n, shape, x_);
  EXPECT_LE(test::relative_difference(layer.forward(x_, second_), expected(statistics)),
            tolerance_);
  EXPECT_LE(test::relative_difference(layer.forward(x_, second_, false), expected(running)),
            tolerance_);
}

TEST_P(BlockedNorm, Backward) {
  SingleLayer layer(spec(), n, test::joined(w_, b_));
  const auto statistics = reference::statistics(n, shape, x_);
  const Numbers y = layer.forward(x_, second_);
  Numbers d = d_y_;
  if (kind().rectifies) {
    for (std::size_t k = 0; k < y.size(); ++k) d[k] = y[k] > 0 ? d[k] : 0;
  }
  const auto gradients = reference::batch_norm_gradients(n, shape, x_, w_, d);
  EXPECT_LE(test::relative_difference(layer.backward(d_y_), gradients.d_x), tolerance_);
  // What is left is the gradient of the second input.
  EXPECT_EQ(layer.d_output(), kind().adds ? d : d_y_);
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

INSTANTIATE_TEST_SUITE_P(
    Kinds, BlockedNorm,
    testing::Combine(testing::Values(op::BatchNorm{false, false}, op::BatchNorm{false, true},
                                     op::BatchNorm{true, true}, op::BatchNorm{true, false}),
                     testing::Values(vector_block, 0)),
    [](const auto& instance) {
      const op::BatchNorm& kind = std::get<0>(instance.param);
      return fmt::format("{}{}{}", kind.adds ? "adds" : "alone", kind.rectifies ? "rectifies" : "",
                         name_of(std::get<1>(instance.param)));
    });

class BlockedMaxPool : public testing::TestWithParam<std::tuple<Window, int>> {
 protected:
  const Window window_ = std::get<0>(GetParam());
  const int block_ = std::get<1>(GetParam());
};

TEST_P(BlockedMaxPool, Alone) {
  const LayerSpec spec = norm_spec("max_pool", op::MaxPool{window_}, block_, window_);
  const reference::Windows windows = {n, spec.input(), spec.output, window_};
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
  if (block_ == 0) return;  // only in blocks
  const LayerSpec spec = norm_spec("max_pool", op::MaxPool{window_, true}, block_, window_);
  const reference::Windows windows = {n, spec.input(), spec.output, window_};
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
TEST_P(BlockedMaxPool, LetsNotANumberPass) {
  if (window_ != Window{2, 2, 0}) return;
  const LayerSpec spec = norm_spec("max_pool", op::MaxPool{window_}, block_, window_);
  Numbers x = uneven_numbers();
  x[0] = x[9] = NAN;
  const Numbers y = SingleLayer(spec, n).forward(x);
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_FALSE(std::isnan(y[2]));
}

INSTANTIATE_TEST_SUITE_P(Windows, BlockedMaxPool,
                         testing::Combine(testing::Values(Window{3, 2, 1}, Window{2, 2, 0},
                                                          Window{3, 1, 1}, Window{2, 3, 0}),
                                          testing::Values(vector_block, 0)),
                         [](const auto& instance) {
                           const Window& window = std::get<0>(instance.param);
                           return fmt::format("k{}s{}p{}{}", window.kernel, window.stride,
                                              window.padding, name_of(std::get<1>(instance.param)));
                         });

class BlockedAveragePool : public testing::TestWithParam<int> {};

TEST_P(BlockedAveragePool, TakesWholeImages) {
  const Window window = {.kernel = 0};
  LayerSpec spec =
      test::image_layer("average_pool", op::AveragePool{window}, shape, shape.channels, window);
  spec.inputs[0].format.block = GetParam() == 0 ? shape.channels : GetParam();
  choose_kernels(spec, {.block = GetParam()});
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

INSTANTIATE_TEST_SUITE_P(Blocks, BlockedAveragePool, testing::Values(vector_block, 0),
                         [](const auto& instance) { return name_of(instance.param); });

}  // namespace
}  // namespace carousel
