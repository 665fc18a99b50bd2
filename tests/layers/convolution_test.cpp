// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/base/check.hpp"
#include "layers/convolution/op.hpp"
#include "tests/layers/single_layer.hpp"
#include "tests/reference/image_layers.hpp"

namespace carousel {
namespace {

using test::Numbers;
using test::SingleLayer;

struct Case {
  int n;
  SampleShape input;
  int out;
  Window window;
  bool bias = false;
};

LayerSpec spec_of(const Case& c) {
  LayerSpec spec =
      test::image_layer("convolution", op::Convolution{c.window}, c.input, c.out, c.window);
  const int kernel = c.window.kernel;
  spec.parameters = {{"weight", {c.out, c.input.channels, kernel, kernel}}};
  if (c.bias) spec.parameters.push_back({"bias", {c.out}});
  spec.saves_input = true;
  return spec;
}

class ConvolutionLayer : public testing::TestWithParam<Case> {
 protected:
  ConvolutionLayer()
      : spec_(spec_of(GetParam())),
        n_(GetParam().n),
        windows_{n_, spec_.input(), spec_.output, GetParam().window},
        x_(test::random_numbers(n_ * spec_.input().size(), "x")),
        w_(test::random_numbers(spec_.parameters[0].size(), "w")),
        b_(test::random_numbers(GetParam().bias ? GetParam().out : 0, "b")),
        d_y_(test::random_numbers(n_ * spec_.output.size(), "d_y")),
        layer_(spec_, n_, test::joined(w_, b_)) {}

  LayerSpec spec_;
  int n_;
  reference::Windows windows_;
  Numbers x_, w_, b_, d_y_;
  SingleLayer layer_;
};

TEST_P(ConvolutionLayer, Forward) {
  const Numbers expected = reference::convolution(windows_, x_, w_, b_);
  EXPECT_LE(test::relative_difference(layer_.forward(x_), expected), test::rounding);
  // Nothing is learned in evaluation, and nothing else differs.
  EXPECT_LE(test::relative_difference(layer_.forward(x_, false), expected), test::rounding);
}

TEST_P(ConvolutionLayer, Backward) {
  (void)layer_.forward(x_);
  const auto expected = reference::convolution_gradients(windows_, x_, w_, d_y_);
  EXPECT_LE(test::relative_difference(layer_.backward(d_y_), expected.d_x), test::rounding);
  const Numbers with_input = layer_.d_parameters();
  const auto middle = with_input.begin() + static_cast<std::ptrdiff_t>(w_.size());
  EXPECT_LE(test::relative_difference(Numbers(with_input.begin(), middle), expected.d_w),
            test::rounding);
  EXPECT_LE(test::relative_difference(Numbers(middle, with_input.end()),
                                      GetParam().bias ? expected.d_b : Numbers()),
            test::rounding);

  const Numbers others = test::random_numbers(x_.size(), "others");
  EXPECT_LE(
      test::relative_difference(layer_.backward(d_y_, others), test::sum(others, expected.d_x)),
      test::rounding);
  layer_.backward_without_input(d_y_);
  EXPECT_EQ(layer_.d_parameters(), with_input);
}

/// Shapes of the residual networks, made small, then whatever may sit badly in a tile.
std::vector<Case> cases() {
  return {
      {2, {3, 17, 15}, 16, {7, 2, 3}},        // stem of ImageNet
      {2, {3, 12, 12}, 16, {3, 1, 1}},        // stem of CIFAR
      {4, {16, 8, 8}, 16, {3, 1, 1}},         // inside a group
      {2, {64, 8, 8}, 64, {3, 1, 1}},         //
      {2, {16, 8, 8}, 32, {3, 2, 1}},         // from group to group
      {2, {16, 8, 8}, 32, {1, 2, 0}},         // its shortcut
      {2, {16, 9, 7}, 32, {1, 2, 0}},         //
      {2, {64, 5, 5}, 256, {1, 1, 0}},        // bottleneck
      {2, {256, 5, 5}, 64, {1, 1, 0}},        //
      {1, {1, 1, 1}, 1, {1, 1, 0}},           // one number
      {1, {1, 1, 1}, 1, {3, 1, 1}},           // one number in padding
      {1, {1, 7, 7}, 1, {7, 1, 0}},           // one window
      {3, {2, 2, 2}, 3, {7, 1, 3}, true},     // images smaller than the kernel
      {2, {3, 1, 2}, 5, {5, 2, 2}, true},     //
      {1, {4, 3, 3}, 2, {5, 3, 1}},           // one window that sees everything but padding's end
      {1, {1, 5, 9}, 7, {3, 1, 1}, true},     // one channel
      {3, {7, 6, 5}, 1, {3, 1, 1}},           // to one channel
      {2, {5, 11, 13}, 19, {3, 3, 0}, true},  // stride 3, odd sizes
      {2, {6, 10, 10}, 9, {5, 3, 2}},         //
      {1, {3, 23, 19}, 11, {7, 3, 3}, true},  //
      {2, {9, 7, 9}, 17, {3, 2, 0}},          // the last row and column are never seen
      {1, {8, 8, 8}, 8, {1, 3, 0}},           // the most pixels are never seen
      {2, {6, 5, 4}, 13, {1, 1, 1}, true},    // windows of nothing but padding
      {2, {5, 6, 6}, 6, {1, 2, 3}},           //
      {2, {13, 9, 8}, 33, {5, 1, 2}},         // no multiples of tiles
      {1, {33, 6, 7}, 31, {3, 1, 2}, true},   // more padding than usual
      {37, {3, 4, 4}, 5, {3, 1, 1}},          // many small images
      {130, {2, 2, 2}, 7, {3, 1, 1}, true},   //
      {1, {17, 34, 29}, 23, {3, 1, 1}},       // one large image
      {1, {3, 64, 64}, 8, {7, 2, 3}},         //
      {2, {70, 4, 4}, 130, {3, 1, 1}},        // more channels than a block
      {3, {300, 3, 3}, 40, {3, 2, 1}},        //
  };
}

std::string name_of(const testing::TestParamInfo<Case>& instance) {
  const auto& [n, input, out, window, bias] = instance.param;
  return fmt::format("n{}c{}h{}w{}to{}k{}s{}p{}{}", n, input.channels, input.height, input.width,
                     out, window.kernel, window.stride, window.padding, bias ? "bias" : "");
}

INSTANTIATE_TEST_SUITE_P(Shapes, ConvolutionLayer, testing::ValuesIn(cases()), name_of);

// How the work is shared among threads must not show: what a run gives is a matter of the deck.
TEST(Convolution, GivesTheSameBitsAgain) {
  const Case c = {3, {17, 13, 11}, 29, {3, 1, 1}, true};
  const LayerSpec spec = spec_of(c);
  const Numbers x = test::random_numbers(c.n * spec.input().size(), "x");
  const Numbers d_y = test::random_numbers(c.n * spec.output.size(), "d_y");
  const Numbers parameters = test::random_numbers(spec.parameter_size(), "w");
  SingleLayer first(spec, c.n, parameters);
  SingleLayer second(spec, c.n, parameters);
  EXPECT_EQ(first.forward(x), second.forward(x));
  EXPECT_EQ(first.backward(d_y), second.backward(d_y));
  EXPECT_EQ(first.d_parameters(), second.d_parameters());
}

}  // namespace
}  // namespace carousel
