// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/relu/relu.hpp"

#include <limits>

#include "layers/flatten/flatten.hpp"
#include "tests/layers/device.hpp"
#include "tests/reference/layers.hpp"

namespace carousel {
namespace {

using test::Numbers;

constexpr int n = 7;
constexpr SampleShape shape = {3, 5, 2};
const std::size_t size = n * shape.size();

TEST(Relu, ForwardAndBackwardInPlace) {
  const Numbers x = test::random_numbers(size, "x");
  const Numbers d = test::random_numbers(size, "d");
  const auto y = test::to_device(x);
  const auto d_x = test::to_device(d);
  Relu layer(LayerSpec{});
  layer.forward(ExecutionSpace(), {.input = {y.data(), n, shape}, .output = {y.data(), n, shape}});
  layer.backward(ExecutionSpace(), {.input = {},
                                    .output = {y.data(), n, shape},
                                    .d_output = {d_x.data(), n, shape},
                                    .d_input = {d_x.data(), n, shape}});
  EXPECT_EQ(test::to_host(y), reference::relu(x));
  EXPECT_EQ(test::to_host(d_x), reference::relu_gradient(reference::relu(x), d));
}

TEST(Relu, LetsNanPass) {
  const auto y = test::to_device(Numbers{std::numeric_limits<real>::quiet_NaN()});
  Relu(LayerSpec{})
      .forward(ExecutionSpace(), {.input = {y.data(), 1, {1}}, .output = {y.data(), 1, {1}}});
  EXPECT_TRUE(std::isnan(test::to_host(y)[0]));
}

TEST(Flatten, CopiesOnlyBetweenDifferentPlaces) {
  const Numbers x = test::random_numbers(size, "x");
  const auto from = test::to_device(x);
  const test::Device<real> to("carousel::test::to", size);
  const test::Device<real> back("carousel::test::back", size);
  const SampleShape flat = {static_cast<int>(shape.size())};
  Flatten layer;
  layer.forward(ExecutionSpace(),
                {.input = {from.data(), n, shape}, .output = {to.data(), n, flat}});
  layer.backward(ExecutionSpace(), {.input = {},
                                    .output = {},
                                    .d_output = {to.data(), n, flat},
                                    .d_input = {back.data(), n, shape}});
  EXPECT_EQ(test::to_host(to), x);
  EXPECT_EQ(test::to_host(back), x);
}

}  // namespace
}  // namespace carousel
