// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/batch_norm/batch_norm.hpp"

#include "core/base/check.hpp"
#include "layers/batch_norm/op.hpp"
#include "tests/layers/single_layer.hpp"
#include "tests/reference/image_layers.hpp"

namespace carousel {
namespace {

using reference::Statistics;
using test::Numbers;
using test::SingleLayer;

struct Case {
  int n;
  SampleShape shape;
};

LayerSpec spec_of(const SampleShape& shape) {
  LayerSpec spec = test::image_layer("batch_norm", op::BatchNorm{}, shape, shape.channels, {});
  spec.parameters = {{"weight", {shape.channels}}, {"bias", {shape.channels}}};
  spec.buffers = {{"running_mean", {shape.channels}}, {"running_var", {shape.channels}}};
  spec.saved = {{"statistics", {3 * shape.channels * std::int64_t{sizeof(real)}, 0}, true}};
  spec.saves_input = true;
  return spec;
}

Numbers rounded(const std::vector<double>& numbers) {
  return {numbers.begin(), numbers.end()};
}

class BatchNormLayer : public testing::TestWithParam<Case> {
 protected:
  BatchNormLayer()
      : n_(GetParam().n),
        shape_(GetParam().shape),
        x_(test::random_numbers(n_ * shape_.size(), "x")),
        d_y_(test::random_numbers(x_.size(), "d_y")),
        w_(test::random_numbers(shape_.channels, "w")),
        b_(test::random_numbers(shape_.channels, "b")) {
    // Channels of unlike mean and width; one has few bits left for what differs.
    const std::size_t plane = std::size_t(shape_.height) * shape_.width;
    for (std::size_t k = 0; k < x_.size(); ++k) {
      const auto channel = static_cast<real>(k / plane % shape_.channels);
      x_[k] = x_[k] * (1 + channel / 4) + channel - 2;
    }
  }

  /// Rounding relative to what is left when the mean is gone.
  [[nodiscard]] double tolerance() const { return (4 + shape_.channels) * test::rounding; }

  int n_;
  SampleShape shape_;
  Numbers x_, d_y_, w_, b_;
};

TEST_P(BatchNormLayer, NormalisesWithTheMicroBatch) {
  SingleLayer layer(spec_of(shape_), n_, test::joined(w_, b_),
                    Numbers(2 * shape_.channels, SingleLayer::mark));
  const Statistics statistics = reference::statistics(n_, shape_, x_);
  EXPECT_LE(test::relative_difference(layer.forward(x_),
                                      reference::batch_norm(n_, shape_, x_, statistics, w_, b_)),
            tolerance());
}

TEST_P(BatchNormLayer, Backward) {
  SingleLayer layer(spec_of(shape_), n_, test::joined(w_, b_),
                    Numbers(2 * shape_.channels, SingleLayer::mark));
  (void)layer.forward(x_);
  const auto expected = reference::batch_norm_gradients(n_, shape_, x_, w_, d_y_);
  EXPECT_LE(test::relative_difference(layer.backward(d_y_), expected.d_x), tolerance());
  const Numbers d_parameters = layer.d_parameters();
  const Numbers statistics = layer.statistics();
  EXPECT_LE(test::relative_difference(d_parameters, test::joined(expected.d_w, expected.d_b)),
            tolerance());
  const Statistics of_x = reference::statistics(n_, shape_, x_);
  EXPECT_LE(test::relative_difference(statistics,
                                      test::joined(rounded(of_x.mean), rounded(of_x.unbiased))),
            test::rounding);

  const Numbers others = test::random_numbers(x_.size(), "others");
  EXPECT_LE(
      test::relative_difference(layer.backward(d_y_, others), test::sum(others, expected.d_x)),
      tolerance());
  layer.backward_without_input(d_y_);
  EXPECT_EQ(layer.d_parameters(), d_parameters);
  EXPECT_EQ(layer.statistics(), statistics);
}

TEST_P(BatchNormLayer, EvaluatesWithRunningStatistics) {
  Statistics running;
  for (int c = 0; c < shape_.channels; ++c) {
    running.mean.push_back(static_cast<real>(c - 1.7));
    running.variance.push_back(static_cast<real>(0.3 + c));
  }
  SingleLayer layer(spec_of(shape_), n_, test::joined(w_, b_),
                    test::joined(rounded(running.mean), rounded(running.variance)));
  EXPECT_LE(test::relative_difference(layer.forward(x_, false),
                                      reference::batch_norm(n_, shape_, x_, running, w_, b_)),
            tolerance());
  for (const real number : layer.saved()) EXPECT_EQ(number, SingleLayer::mark);
}

std::string name_of(const testing::TestParamInfo<Case>& instance) {
  const auto& [n, shape] = instance.param;
  return fmt::format("n{}c{}h{}w{}", n, shape.channels, shape.height, shape.width);
}

INSTANTIATE_TEST_SUITE_P(Shapes, BatchNormLayer,
                         // Of two values the gradient vanishes, and only rounding is left.
                         testing::Values(Case{3, {1, 1, 1}}, Case{1, {3, 2, 1}}, Case{4, {7, 1, 1}},
                                         Case{1, {5, 3, 3}}, Case{3, {1, 5, 7}},
                                         Case{2, {17, 4, 4}}, Case{5, {6, 7, 5}},
                                         Case{16, {16, 8, 8}}, Case{33, {3, 9, 11}}),
                         name_of);

// One of the first things that goes wrong: E[x^2] - E[x]^2 of a mean that is far from zero.
TEST(BatchNorm, KeepsTheVarianceOfNumbersFarFromZero) {
  const SampleShape shape = {1, 8, 8};
  Numbers x(shape.size());
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = real(k % 2 == 0 ? 4096 : 4097);
  SingleLayer layer(spec_of(shape), 1, {1, 0}, {0, 1});
  const Numbers y = layer.forward(x);
  for (std::size_t k = 0; k < y.size(); ++k) EXPECT_NEAR(y[k], k % 2 == 0 ? -1 : 1, 1e-4);
}

TEST(BatchNorm, StaysFiniteWhereAllPixelsAreEqual) {
  const SampleShape shape = {2, 3, 3};
  SingleLayer layer(spec_of(shape), 2, {1, 2, 3, 4}, {0, 0, 1, 1});
  const Numbers y = layer.forward(Numbers(2 * shape.size(), 5));
  for (std::size_t k = 0; k < y.size(); ++k) EXPECT_EQ(y[k], k / 9 % 2 == 0 ? 3 : 4);
  for (const real d : layer.backward(Numbers(y.size(), 1))) EXPECT_EQ(d, 0);
}

}  // namespace
}  // namespace carousel
