// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What every_op_test does not see of norms and poolings in blocks of channels, or with all of them
// side by side: an addition that no ReLU follows, and what is not a number.

#include <algorithm>
#include <limits>

#include "core/base/vectors.hpp"
#include "core/model/kernels.hpp"
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

Numbers rounded(const std::vector<double>& numbers) {
  return {numbers.begin(), numbers.end()};
}

/// Of how many channels a block has; 0 is all.
class Blocked : public testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static LayerSpec with_kernels(LayerSpec spec) {
    for (LayerInput& input : spec.inputs)
      input.format.block = GetParam() == 0 ? shape.channels : GetParam();
    choose_kernels(spec, {.block = GetParam()});
    return spec;
  }
};

TEST_P(Blocked, BatchNormAddsWithoutRelu) {
  LayerSpec spec =
      test::image_layer("batch_norm", op::BatchNorm{.adds = true}, shape, shape.channels, {});
  spec.parameters = {{"weight", {shape.channels}}, {"bias", {shape.channels}}};
  spec.buffers = {{"running_mean", {shape.channels}}, {"running_var", {shape.channels}}};
  spec.inputs.push_back(spec.inputs[0]);
  const Numbers x = uneven_numbers();
  const Numbers second = test::random_numbers(x.size(), "second");
  const Numbers d_y = test::random_numbers(x.size(), "d_y");
  const Numbers w = test::random_numbers(shape.channels, "w");
  const Numbers b = test::random_numbers(shape.channels, "b");
  const double tolerance = (4 + shape.channels) * test::rounding;
  const auto statistics = reference::statistics(n, shape, x);
  const auto gradients = reference::batch_norm_gradients(n, shape, x, w, d_y);
  SingleLayer layer(with_kernels(spec), n, test::joined(w, b));
  EXPECT_LE(test::relative_difference(
                layer.forward(x, second),
                test::sum(reference::batch_norm(n, shape, x, statistics, w, b), second)),
            tolerance);
  EXPECT_LE(test::relative_difference(layer.backward(d_y), gradients.d_x), tolerance);
  EXPECT_EQ(layer.d_output(), d_y);
  EXPECT_EQ(layer.d_second(), d_y);
  EXPECT_LE(
      test::relative_difference(layer.d_parameters(), test::joined(gradients.d_w, gradients.d_b)),
      tolerance);
  EXPECT_LE(
      test::relative_difference(
          layer.statistics(), test::joined(rounded(statistics.mean), rounded(statistics.unbiased))),
      test::rounding);
}

// Sums of squares about the first pixel, as of a border that stands out in every image. The sums of
// runs are put about that pixel in double, each with the rounding of its square of the distance,
// which is `pixels` times the variance where a single pixel is away.
TEST_P(Blocked, BatchNormKeepsTheVarianceWhereTheFirstPixelIsFarFromAllOthers) {
  const SampleShape image = {shape.channels, 40, 40};
  LayerSpec spec = test::image_layer("batch_norm", op::BatchNorm{}, image, image.channels, {});
  spec.parameters = {{"weight", {image.channels}}, {"bias", {image.channels}}};
  spec.buffers = {{"running_mean", {image.channels}}, {"running_var", {image.channels}}};
  Numbers x(image.size(), real(0.3));
  const std::size_t pixels = std::size_t(image.height) * image.width;
  for (std::size_t k = 0; k < x.size(); k += pixels) x[k] = 1000;
  const Numbers ones(image.channels, 1);
  SingleLayer layer(with_kernels(spec), 1, test::joined(ones, ones));
  layer.forward(x);
  layer.backward(Numbers(x.size(), 1));
  const auto expected = reference::statistics(1, image, x);
  const auto runs = double(pixels) / 16;
  EXPECT_LE(test::relative_difference(layer.statistics(), test::joined(rounded(expected.mean),
                                                                       rounded(expected.unbiased))),
            std::max<double>(64 * std::numeric_limits<real>::epsilon(),
                             pixels * runs * std::numeric_limits<double>::epsilon()));
}

// Not a number is larger than all numbers, as in PyTorch.
TEST_P(Blocked, MaxPoolLetsNotANumberPass) {
  const Window window = {2, 2, 0};
  const LayerSpec spec = with_kernels(
      test::image_layer("max_pool", op::MaxPool{window}, shape, shape.channels, window));
  Numbers x = uneven_numbers();
  x[0] = x[9] = NAN;
  const Numbers y = SingleLayer(spec, n).forward(x);
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_FALSE(std::isnan(y[2]));
}

INSTANTIATE_TEST_SUITE_P(Blocks, Blocked, testing::Values(vector_block, 0),
                         [](const auto& instance) {
                           return instance.param == 0 ? "ChannelsLast" : "Blocks";
                         });

}  // namespace
}  // namespace carousel
