// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/base/vectors.hpp"
#include "core/model/op.hpp"
#include "layers/dropout/op.hpp"
#include "layers/factory.hpp"
#include "tests/layers/blocks.hpp"
#include "tests/layers/device.hpp"

namespace carousel {
namespace {

using test::Numbers;

constexpr int n = 3;
constexpr int features = 2000;
constexpr SampleShape shape = {features};
const std::vector<int> samples = {40, 7, 1'000'000};

class DropoutTest : public testing::Test {
 protected:
  static LayerSpec spec(const char* name, double probability) {
    LayerSpec layer;
    layer.kind = &op_named("dropout");
    layer.attributes = op::Dropout{probability};
    layer.name = name;
    layer.inputs = {{-1, shape}};
    layer.output = shape;
    layer.in_place = true;
    return layer;
  }

  [[nodiscard]] Draw draw(std::int64_t epoch) const { return {9, epoch, samples_.data()}; }

  [[nodiscard]] Numbers forward(Layer& layer, const Draw& draw, bool training = true) const {
    const auto y = test::to_device(Numbers(n * features, 1));
    layer.forward(ExecutionSpace(), {.input = {y.data(), n, shape},
                                     .output = {y.data(), n, shape},
                                     .training = training,
                                     .draw = draw});
    return test::to_host(y);
  }
  [[nodiscard]] Numbers backward(Layer& layer, const Draw& draw) const {
    const auto d = test::to_device(Numbers(n * features, 1));
    layer.backward(ExecutionSpace(), {.input = {},
                                      .output = {},
                                      .d_output = {d.data(), n, shape},
                                      .d_input = {d.data(), n, shape},
                                      .draw = draw});
    return test::to_host(d);
  }

  const test::Device<int> samples_ = test::to_device(samples);
};

TEST_F(DropoutTest, DropsWhatTheFormulaSays) {
  const auto layer = make_layer(spec("2", 0.3), n, {});
  Numbers expected;
  for (const int sample : samples) {
    for (int k = 0; k < features; ++k) {
      const double u = uniform01(random_key(9, "dropout 2"), (5ULL << 32) + sample, k);
      expected.push_back(u < 0.3 ? real(0) : static_cast<real>(1 / 0.7));
    }
  }
  EXPECT_EQ(forward(*layer, draw(5)), expected);
  const auto dropped = std::ranges::count(expected, real(0));
  EXPECT_NEAR(static_cast<double>(dropped) / (n * features), 0.3, 0.02);
}

TEST_F(DropoutTest, BackwardDropsTheSame) {
  const auto layer = make_layer(spec("2", 0.3), n, {});
  EXPECT_EQ(backward(*layer, draw(5)), forward(*layer, draw(5)));
}

TEST_F(DropoutTest, DiffersBetweenEpochsSamplesAndLayers) {
  const auto layer = make_layer(spec("2", 0.5), n, {});
  const Numbers first = forward(*layer, draw(5));
  EXPECT_NE(forward(*layer, draw(6)), first);
  EXPECT_NE(forward(*make_layer(spec("5", 0.5), n, {}), draw(5)), first);
  EXPECT_FALSE(std::equal(first.begin(), first.begin() + features, first.begin() + features));
}

// So that processors with other registers drop the same.
TEST_F(DropoutTest, DropsTheSameInBlocks) {
  constexpr SampleShape tokens = {2 * vector_block, 11};
  const auto dropped = [&](int block) {
    LayerSpec layer = spec("2", 0.4);
    layer.inputs = {{-1, tokens, {.block = block}}};
    layer.output = tokens;
    layer.output_format.block = block;
    const auto y = test::to_device(Numbers(n * tokens.size(), 1));
    make_layer(layer, n, {})
        ->forward(
            ExecutionSpace(),
            {.input = {y.data(), n, tokens}, .output = {y.data(), n, tokens}, .draw = draw(5)});
    return test::from_blocks(test::to_host(y), tokens, layer.output_format, n);
  };
  EXPECT_EQ(dropped(vector_block), dropped(1));
}

TEST_F(DropoutTest, EvaluationKeepsEverything) {
  const auto layer = make_layer(spec("2", 0.5), n, {});
  EXPECT_EQ(forward(*layer, draw(5), false), Numbers(n * features, 1));
}

}  // namespace
}  // namespace carousel
