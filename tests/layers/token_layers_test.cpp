// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The layers of vision transformers, in blocks of channels and without, against naive loops.

#include <algorithm>
#include <set>

#include "core/base/vectors.hpp"
#include "core/model/builder.hpp"
#include "core/model/kernels.hpp"
#include "tests/layers/single_layer.hpp"
#include "tests/reference/image_layers.hpp"
#include "tests/reference/token_layers.hpp"

namespace carousel {
namespace {

using test::Numbers;
using test::SingleLayer;

constexpr int n = 3;
constexpr double tolerance = 5 * test::rounding;

/// Of how many channels a block has.
class Tokens : public testing::TestWithParam<int> {
 protected:
  /// The one layer that `append` gives a model of tokens.
  template <class Append>
  [[nodiscard]] LayerSpec spec_of(const SampleShape& input, const Append& append) const {
    ModelBuilder builder("tokens", input, 2);
    append(builder);
    LayerSpec spec = builder.model().layers.back();
    if (!spec.is("patch_embedding"))
      spec.inputs.front().format.block = GetParam() > 0 ? GetParam() : input.channels;
    choose_kernels(spec, {.block = GetParam()});
    return spec;
  }
  [[nodiscard]] static Numbers random(std::int64_t size, const char* purpose) {
    return test::random_numbers(size, purpose);
  }
  static void expect_near(const Numbers& actual, const Numbers& expected) {
    EXPECT_LE(test::relative_difference(actual, expected), tolerance);
  }

  // Of two numbers, a normalised one is 1 or -1, and nothing is left of its gradient.
  const int width_ = 2 * std::max(vector_block, 4);
  const SampleShape shape_ = {width_, 19};  // no multiple of any tile
};

TEST_P(Tokens, AreNormalised) {
  Numbers x = random(n * shape_.size(), "x");
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = 3 * x[k] + static_cast<real>(k % 19) / 2;
  const Numbers w = random(width_, "w");
  const Numbers b = random(width_, "b");
  const Numbers d_y = random(n * shape_.size(), "d_y");
  const LayerSpec spec = spec_of(shape_, [](ModelBuilder& builder) {
    builder.add("layer_norm", "ln", {{"epsilon", reference::layer_norm_epsilon}});
  });
  SingleLayer layer(spec, n, test::joined(w, b));
  const auto gradients = reference::layer_norm_gradients(n, shape_, x, w, d_y);
  expect_near(layer.forward(x), reference::layer_norm(n, shape_, x, w, b));
  expect_near(layer.backward(d_y), gradients.d_x);
  expect_near(layer.d_parameters(), test::joined(gradients.d_w, gradients.d_b));
  EXPECT_EQ(layer.d_output(), d_y);
  const Numbers others = random(n * shape_.size(), "others");
  expect_near(layer.backward(d_y, others), test::sum(gradients.d_x, others));
}

TEST_P(Tokens, AreNormalisedByTheirMeanSquare) {
  constexpr double epsilon = 0.01;
  Numbers x = random(n * shape_.size(), "x");
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = 3 * x[k] + static_cast<real>(k % 19) / 2;
  const Numbers w = random(width_, "w");
  const Numbers d_y = random(n * shape_.size(), "d_y");
  const LayerSpec spec = spec_of(shape_, [](ModelBuilder& builder) {
    builder.add("rms_norm", "norm", {{"epsilon", epsilon}});
  });
  ASSERT_EQ(spec.parameters.size(), 1U);
  EXPECT_EQ(spec.parameters[0].name, "norm.weight");
  SingleLayer layer(spec, n, w);
  const auto gradients = reference::rms_norm_gradients(n, shape_, epsilon, x, w, d_y);
  expect_near(layer.forward(x), reference::rms_norm(n, shape_, epsilon, x, w));
  expect_near(layer.backward(d_y), gradients.d_x);
  expect_near(layer.d_parameters(), gradients.d_w);
  EXPECT_EQ(layer.d_output(), d_y);
  const Numbers others = random(n * shape_.size(), "others");
  expect_near(layer.backward(d_y, others), test::sum(gradients.d_x, others));
}

TEST_P(Tokens, MeetGelu) {
  Numbers x = random(n * shape_.size(), "x");
  for (real& number : x) number *= 20;
  x[0] = 0;
  x[1] = 100;
  x[2] = -100;
  const Numbers d_y = random(x.size(), "d_y");
  SingleLayer layer(spec_of(shape_, [](ModelBuilder& builder) { builder.add("gelu", "gelu"); }), n);
  const Numbers d_x = reference::gelu_gradient(x, d_y);
  expect_near(layer.forward(x), reference::gelu(x));
  expect_near(layer.backward(d_y), d_x);
  expect_near(layer.backward(d_y, d_y), test::sum(d_x, d_y));
}

TEST_P(Tokens, AttendToOneAnother) {
  // More than one tile of queries, the last one not full.
  for (const SampleShape& shape : {shape_, SampleShape{width_, 2 * vector_block * 2 + 3}}) {
    const SampleShape input = {3 * shape.channels, shape.height};
    for (const op::Attention& attributes :
         {op::Attention{1}, op::Attention{2}, op::Attention{1, true}, op::Attention{2, true}}) {
      Numbers x = random(n * input.size(), "x");
      for (real& number : x) number *= 4;
      const Numbers d_y = random(n * shape.size(), "d_y");
      SingleLayer layer(spec_of(input,
                                [&](ModelBuilder& builder) {
                                  builder.add("attention", "attention",
                                              {{"heads", 1.0 * attributes.heads},
                                               {"causal", attributes.causal ? 1.0 : 0.0}});
                                }),
                        n);
      const Numbers d_x = reference::attention_gradient(n, shape, attributes, x, d_y);
      expect_near(layer.forward(x), reference::attention(n, shape, attributes, x));
      expect_near(layer.backward(d_y), d_x);
      const Numbers others = random(x.size(), "others");
      expect_near(layer.backward(d_y, others), test::sum(d_x, others));
    }
  }
}

// Scores whose exponentials would be no numbers.
TEST_P(Tokens, AttendWhereScoresAreLarge) {
  const SampleShape input = {3 * shape_.channels, shape_.height};
  Numbers x = random(n * input.size(), "x");
  for (real& number : x) number *= 100;
  SingleLayer layer(spec_of(input,
                            [](ModelBuilder& builder) {
                              builder.add("attention", "large", {{"heads", 1}});
                            }),
                    n);
  for (const real y : layer.forward(x)) EXPECT_LE(std::abs(y), 50.1);
}

/// Which nobody here multiplies with all features side by side.
using TokenProducts = Tokens;

TEST_P(TokenProducts, AreLinear) {
  const int features = 3 * vector_block;
  const SampleShape output = {features, shape_.height};
  const Numbers x = random(n * shape_.size(), "x");
  const Numbers w = random(std::int64_t{features} * width_, "w");
  const Numbers b = random(features, "b");
  const Numbers d_y = random(n * output.size(), "d_y");
  SingleLayer layer(spec_of(shape_,
                            [&](ModelBuilder& builder) {
                              builder.add("linear", "linear", {{"features", 1.0 * features}});
                            }),
                    n, test::joined(w, b));
  const reference::Windows pixels = {n, shape_, output, {}};
  const auto gradients = reference::convolution_gradients(pixels, x, w, d_y);
  expect_near(layer.forward(x), reference::convolution(pixels, x, w, b));
  expect_near(layer.backward(d_y), gradients.d_x);
  expect_near(layer.d_parameters(), test::joined(gradients.d_w, gradients.d_b));
}

TEST_P(TokenProducts, AreMadeOfPatches) {
  const SampleShape image = {3, 12, 8};
  const Window window = {4, 4, 0};
  const SampleShape patches = {width_, 3, 2};
  const SampleShape output = {width_, 7};
  const Numbers x = random(n * image.size(), "x");
  const Numbers class_token = random(width_, "class");
  const Numbers w = random(std::int64_t{width_} * 3 * 16, "w");
  const Numbers b = random(width_, "b");
  const Numbers positions = random(output.size(), "positions");
  const Numbers d_y = random(n * output.size(), "d_y");
  SingleLayer layer(
      spec_of(
          image,
          [&](ModelBuilder& builder) {
            builder.add("patch_embedding", "patches", {{"features", 1.0 * width_}, {"patch", 4}});
          }),
      n, test::joined(test::joined(class_token, w), test::joined(b, positions)));
  const reference::Windows windows = {n, image, patches, window};
  expect_near(layer.forward(x),
              reference::with_positions(n, output, reference::convolution(windows, x, w, b),
                                        class_token, positions));
  layer.backward_without_input(d_y);
  const auto of_positions = reference::position_gradients(n, output, d_y);
  const auto gradients = reference::convolution_gradients(windows, x, w, of_positions.d_patches);
  expect_near(layer.d_parameters(),
              test::joined(test::joined(of_positions.d_class_token, gradients.d_w),
                           test::joined(gradients.d_b, of_positions.d_positions)));
}

TEST_P(Tokens, LeaveTheFirst) {
  const Numbers x = random(n * shape_.size(), "x");
  const Numbers d_y = random(std::int64_t{n} * width_, "d_y");
  SingleLayer layer(spec_of(shape_, [](ModelBuilder& builder) { builder.add("first_token"); }), n);
  const Numbers d_x = reference::first_token_gradient(n, shape_, d_y);
  EXPECT_EQ(layer.forward(x), reference::first_token(n, shape_, x));
  EXPECT_EQ(layer.backward(d_y), d_x);
  EXPECT_EQ(layer.backward(d_y, x), test::sum(d_x, x));
}

// 0: all features side by side.
INSTANTIATE_TEST_SUITE_P(Blocks, Tokens, testing::ValuesIn(std::set{0, 1, vector_block}),
                         testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Blocks, TokenProducts, testing::ValuesIn(std::set{1, vector_block}),
                         testing::PrintToStringParamName());

// Heads that fill no blocks, between layers that do.
TEST(ConvertedLayer, ComputesAsInPlainOrder) {
  if constexpr (vector_block == 1) GTEST_SKIP() << "tensors lie in plain order in any case";
  constexpr int channels = 2 * vector_block;
  ModelBuilder builder("tokens", {3 * channels, 7}, 2);
  const LayerSpec plain = builder.add("attention", "attention", {{"heads", 4}});
  LayerSpec blocked = plain;
  blocked.inputs[0].format.block = vector_block;
  choose_kernels(blocked, {.block = vector_block});
  EXPECT_EQ(blocked.converted, Converted::orders);
  EXPECT_EQ(blocked.output_format.block, vector_block);
  const Numbers x = test::random_numbers(n * plain.input().size(), "x");
  const Numbers d_y = test::random_numbers(n * plain.output.size(), "d_y");
  const Numbers others = test::random_numbers(n * plain.input().size(), "others");
  SingleLayer expected(plain, n);
  SingleLayer layer(blocked, n);
  EXPECT_EQ(layer.forward(x), expected.forward(x));
  EXPECT_EQ(layer.backward(d_y), expected.backward(d_y));
  EXPECT_EQ(layer.backward(d_y, others), expected.backward(d_y, others));
}

}  // namespace
}  // namespace carousel
