// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/pool.hpp"
#include "layers/average_pool/op.hpp"
#include "layers/max_pool/op.hpp"

#include <limits>

#include "core/base/check.hpp"
#include "tests/layers/single_layer.hpp"
#include "tests/reference/image_layers.hpp"

namespace carousel {
namespace {

using test::Numbers;
using test::SingleLayer;

struct Case {
  int n;
  SampleShape input;
  Window window;

  template <class Attributes>
  [[nodiscard]] LayerSpec spec(const char* kind) const {
    return test::image_layer(kind, Attributes{window}, input, input.channels, window);
  }
};

std::string name_of(const testing::TestParamInfo<Case>& instance) {
  const auto& [n, input, window] = instance.param;
  return fmt::format("n{}c{}h{}w{}k{}s{}p{}", n, input.channels, input.height, input.width,
                     window.kernel, window.stride, window.padding);
}

class Pool : public testing::TestWithParam<Case> {
 protected:
  Pool() : n_(GetParam().n), x_(test::random_numbers(n_ * GetParam().input.size(), "x")) {
    // Equal pixels are common behind a rectifier.
    for (std::size_t k = 0; k < x_.size(); k += 3) x_[k] = 0;
  }

  [[nodiscard]] static reference::Windows windows(const LayerSpec& spec) {
    return {GetParam().n, spec.input(), spec.output, GetParam().window};
  }
  [[nodiscard]] Numbers d_y(const LayerSpec& spec) const {
    return test::random_numbers(n_ * spec.output.size(), "d_y");
  }
  /// What other layers left where the gradient goes.
  [[nodiscard]] Numbers others() const { return test::random_numbers(x_.size(), "others"); }

  int n_;
  Numbers x_;
};

class MaxPooling : public Pool {};
class AveragePooling : public Pool {};

TEST_P(MaxPooling, EqualsPlainLoops) {
  const LayerSpec spec = GetParam().spec<op::MaxPool>("max_pool");
  SingleLayer layer(spec, n_);
  EXPECT_EQ(layer.forward(x_), reference::max_pool(windows(spec), x_));
  const Numbers expected = reference::max_pool_gradient(windows(spec), x_, d_y(spec));
  EXPECT_LE(test::relative_difference(layer.backward(d_y(spec)), expected), test::rounding);
  EXPECT_LE(
      test::relative_difference(layer.backward(d_y(spec), others()), test::sum(others(), expected)),
      test::rounding);
  layer.backward_without_input(d_y(spec));
}

TEST_P(AveragePooling, EqualsPlainLoops) {
  const LayerSpec spec = GetParam().spec<op::AveragePool>("average_pool");
  SingleLayer layer(spec, n_);
  EXPECT_LE(
      test::relative_difference(layer.forward(x_), reference::average_pool(windows(spec), x_)),
      test::rounding);
  const Numbers expected = reference::average_pool_gradient(windows(spec), d_y(spec));
  EXPECT_LE(test::relative_difference(layer.backward(d_y(spec)), expected), test::rounding);
  EXPECT_LE(
      test::relative_difference(layer.backward(d_y(spec), others()), test::sum(others(), expected)),
      test::rounding);
  layer.backward_without_input(d_y(spec));
}

INSTANTIATE_TEST_SUITE_P(
    Windows, MaxPooling,
    testing::Values(Case{1, {1, 1, 1}, {1, 1, 0}}, Case{2, {3, 5, 7}, {1, 1, 0}},
                    Case{1, {1, 7, 7}, {7, 1, 0}}, Case{3, {5, 8, 8}, {2, 2, 0}},
                    Case{2, {7, 9, 7}, {2, 2, 0}}, Case{4, {6, 16, 16}, {3, 2, 1}},
                    Case{1, {17, 11, 13}, {3, 2, 1}}, Case{5, {2, 6, 5}, {3, 1, 1}},
                    Case{2, {3, 10, 9}, {3, 3, 0}}, Case{2, {4, 11, 5}, {3, 3, 1}},
                    Case{3, {2, 12, 7}, {5, 2, 2}}, Case{2, {1, 3, 2}, {7, 2, 3}},
                    Case{1, {2, 9, 9}, {2, 3, 0}}, Case{1, {3, 2, 2}, {3, 2, 1}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Windows, AveragePooling,
    testing::Values(Case{1, {1, 1, 1}, {0, 1, 0}}, Case{3, {17, 7, 5}, {0, 1, 0}},
                    Case{64, {8, 4, 4}, {0, 1, 0}}, Case{2, {3, 5, 7}, {1, 1, 0}},
                    Case{3, {5, 8, 8}, {2, 2, 0}}, Case{2, {7, 9, 7}, {2, 2, 0}},
                    Case{2, {3, 10, 9}, {3, 1, 0}}, Case{1, {2, 11, 8}, {2, 3, 0}},
                    Case{2, {2, 7, 7}, {7, 1, 0}}, Case{2, {3, 6, 5}, {3, 1, 1}},
                    Case{2, {2, 9, 7}, {4, 3, 2}}),
    name_of);

TEST(MaxPool, LetsNanPass) {
  constexpr real nan = std::numeric_limits<real>::quiet_NaN();
  // A window of each column of pixels pairs: a number before NaN, NaN before a number, two NaN.
  const SampleShape input = {1, 2, 3};
  SingleLayer layer(
      test::image_layer("max_pool", op::MaxPool{Window{2, 1, 0}}, input, 1, {2, 1, 0}), 1);
  for (const real y : layer.forward({nan, 1, 2, 3, 4, nan})) EXPECT_TRUE(std::isnan(y));
  EXPECT_EQ(layer.backward({1, 2}), (Numbers{1, 0, 0, 0, 0, 2}));
  (void)layer.forward({nan, nan, 2, 3, 4, 5});
  EXPECT_EQ(layer.backward({1, 2}), (Numbers{1, 2, 0, 0, 0, 0}));
}

TEST(MaxPool, TakesTheLargestOfMinusInfinities) {
  constexpr real infinity = std::numeric_limits<real>::infinity();
  SingleLayer layer(
      test::image_layer("max_pool", op::MaxPool{Window{2, 2, 1}}, {1, 2, 2}, 1, {2, 2, 1}), 1);
  EXPECT_EQ(layer.forward(Numbers(4, -infinity)), Numbers(4, -infinity));
  EXPECT_EQ(layer.backward({1, 2, 3, 4}), (Numbers{1, 2, 3, 4}));
}

TEST(MaxPool, GivesTheGradientToTheFirstOfEquals) {
  SingleLayer layer(
      test::image_layer("max_pool", op::MaxPool{Window{2, 2, 0}}, {1, 2, 2}, 1, {2, 2, 0}), 1);
  EXPECT_EQ(layer.forward({3, 3, 3, 3}), Numbers{3});
  EXPECT_EQ(layer.backward({5}), (Numbers{5, 0, 0, 0}));
}

TEST(Pool, RefusesWindowsOfNothingButPadding) {
  EXPECT_THROW(
      MaxPool(test::image_layer("max_pool", op::MaxPool{Window{3, 1, 2}}, {1, 4, 4}, 1, {3, 1, 2})),
      Error);
}

}  // namespace
}  // namespace carousel
