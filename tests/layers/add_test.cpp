// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/add/add.hpp"

#include "core/base/check.hpp"
#include "tests/layers/single_layer.hpp"
#include "tests/reference/layers.hpp"

namespace carousel {
namespace {

using test::Numbers;

constexpr int n = 3;
constexpr SampleShape shape = {5, 7, 3};
const std::size_t size = n * shape.size();

LayerSpec spec_of() {
  LayerSpec spec = test::image_layer("add", {}, shape, shape.channels, {});
  spec.inputs = {{1, shape}, {0, shape}};
  spec.in_place = true;
  return spec;
}

class Addition : public testing::Test {
 protected:
  /// The second gradient after a backward into `d_second`.
  [[nodiscard]] Numbers backward(const Numbers& d_second, bool adds) {
    const auto to = test::to_device(d_second);
    layer_->backward(ExecutionSpace(), {.input = {},
                                        .output = {nullptr, n, shape},
                                        .d_output = {d_sum_.data(), n, shape},
                                        .d_input = {d_sum_.data(), n, shape},
                                        .d_second = {to.data(), n, shape},
                                        .adds_second = adds});
    return test::to_host(to);
  }

  std::unique_ptr<Layer> layer_ = make_layer(spec_of(), n, {});
  Numbers d_ = test::random_numbers(size, "d");
  test::Device<real> d_sum_ = test::to_device(d_);
};

TEST_F(Addition, TakesThePlaceOfItsFirstTerm) {
  const Numbers a = test::random_numbers(size, "a");
  const Numbers b = test::random_numbers(size, "b");
  const auto first = test::to_device(a);
  const auto second = test::to_device(b);
  layer_->forward(ExecutionSpace(), {.input = {first.data(), n, shape},
                                     .output = {first.data(), n, shape},
                                     .second = {second.data(), n, shape}});
  EXPECT_EQ(test::to_host(first), reference::add(a, b));
  EXPECT_EQ(test::to_host(second), b);
}

TEST_F(Addition, HandsItsGradientToTheSecondTerm) {
  EXPECT_EQ(backward(Numbers(size, test::SingleLayer::mark), false), d_);
  EXPECT_EQ(test::to_host(d_sum_), d_);
}

TEST_F(Addition, AddsToWhatOtherLayersLeftThere) {
  const Numbers others = test::random_numbers(size, "others");
  EXPECT_EQ(backward(others, true), test::sum(others, d_));
}

TEST_F(Addition, DoesNothingWhereTheGradientServesBoth) {
  layer_->backward(ExecutionSpace(), {.input = {},
                                      .output = {nullptr, n, shape},
                                      .d_output = {d_sum_.data(), n, shape},
                                      .d_input = {d_sum_.data(), n, shape}});
  EXPECT_EQ(test::to_host(d_sum_), d_);
}

TEST(Add, RefusesOneTerm) {
  LayerSpec spec = spec_of();
  spec.inputs.pop_back();
  EXPECT_THROW(Add{spec}, Error);
}

}  // namespace
}  // namespace carousel
