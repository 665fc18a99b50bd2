// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Group norm in every order and type of tensors, alone and with what it is fused with, against
// naive loops in double precision.

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <set>

#include "core/base/check.hpp"
#include "core/base/vectors.hpp"
#include "core/model/builder.hpp"
#include "core/model/kernels.hpp"
#include "layers/group_norm/op.hpp"
#include "tests/layers/single_layer.hpp"

namespace carousel {
namespace {

using test::Numbers;
using test::SingleLayer;
using ::testing::HasSubstr;

constexpr int n = 3;

struct Case {
  SampleShape shape;
  int groups;
  bool adds = false;
  bool rectifies = false;
};

/// The layer whose tensors all have that format, of which a block of 0 is all channels.
LayerSpec spec_of(const Case& one, int block, DataType type) {
  ModelBuilder builder("group norm", one.shape, 2);
  LayerSpec spec = builder.add("group_norm", "norm", {{"groups", 1.0 * one.groups}});
  auto norm = spec.as<op::GroupNorm>();
  norm.adds = one.adds;
  norm.rectifies = one.rectifies;
  spec.attributes = norm;
  spec.inputs[0].format = {type, block == 0 ? one.shape.channels : block};
  spec.output_format = spec.inputs[0].format;
  if (one.adds) spec.inputs.push_back(spec.inputs[0]);
  EXPECT_EQ(fit_kernels(spec, {.block = block, .type = type}), "");
  return spec;
}

/// y = [max(0,] (x - mean) / sqrt(variance + epsilon) w + b [+ second] [)], and its gradients.
class Reference {
 public:
  Reference(const Case& one, int images, const Numbers& x, const Numbers& w, const Numbers& b)
      : one_(one), w_(w), z_(x.begin(), x.end()), y_(x.size()) {
    const std::int64_t size = one.shape.size() / one.groups;
    for (std::int64_t g = 0; g < std::int64_t{images} * one.groups; ++g) {
      double mean = 0;
      double variance = 0;
      for (std::int64_t i = g * size; i < (g + 1) * size; ++i) mean += z_[i] / size;
      for (std::int64_t i = g * size; i < (g + 1) * size; ++i)
        variance += (z_[i] - mean) * (z_[i] - mean) / size;
      inverse_.push_back(1 / std::sqrt(variance + 1e-5));
      for (std::int64_t i = g * size; i < (g + 1) * size; ++i) {
        z_[i] = (z_[i] - mean) * inverse_.back();
        y_[i] = z_[i] * w[channel(i)] + b[channel(i)];
      }
    }
  }

  [[nodiscard]] std::vector<double> output(const Numbers& second) const {
    std::vector<double> y = y_;
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (one_.adds) y[i] += second[i];
      if (one_.rectifies) y[i] = std::max(y[i], 0.0);
    }
    return y;
  }

  struct Gradients {
    std::vector<double> d_x;
    std::vector<double> d_parameters;
    double largest = 0;  // of g inverse: of small groups, little of it is left in d_x
  };
  /// Of the gradient of what was normalised: d_x = (g - mean(g) - z mean(g z)) inverse, g = d w.
  [[nodiscard]] Gradients gradients(const Numbers& d) const {
    Gradients result{std::vector<double>(d.size()),
                     std::vector<double>(2 * static_cast<std::size_t>(one_.shape.channels))};
    const std::int64_t size = one_.shape.size() / one_.groups;
    for (std::size_t g = 0; g < inverse_.size(); ++g) {
      const auto begin = static_cast<std::int64_t>(g) * size;
      double mean = 0;
      double product = 0;
      for (std::int64_t i = begin; i < begin + size; ++i) {
        const int c = channel(i);
        result.d_parameters[c] += d[i] * z_[i];
        result.d_parameters[one_.shape.channels + c] += d[i];
        mean += d[i] * w_[c] / size;
        product += d[i] * w_[c] * z_[i] / size;
      }
      for (std::int64_t i = begin; i < begin + size; ++i) {
        const double own = d[i] * w_[channel(i)];
        result.d_x[i] = (own - mean - z_[i] * product) * inverse_[g];
        result.largest = std::max(result.largest, std::abs(own * inverse_[g]));
      }
    }
    return result;
  }

 private:
  [[nodiscard]] int channel(std::int64_t i) const {
    return static_cast<int>(i / (one_.shape.height * one_.shape.width) % one_.shape.channels);
  }

  Case one_;
  Numbers w_;
  std::vector<double> z_;
  std::vector<double> y_;
  std::vector<double> inverse_;  // [image][group]
};

class GroupNorm : public testing::TestWithParam<std::tuple<Case, int, DataType>> {
 protected:
  [[nodiscard]] static const Case& one() { return std::get<0>(GetParam()); }
  [[nodiscard]] static DataType type() { return std::get<2>(GetParam()); }
  [[nodiscard]] static LayerSpec spec() { return spec_of(one(), std::get<1>(GetParam()), type()); }
  [[nodiscard]] static Numbers random(std::int64_t size, const char* purpose) {
    return test::rounded_to(test::random_numbers(static_cast<std::size_t>(size), purpose), type());
  }
  /// Numbers of channels that differ in mean and width.
  [[nodiscard]] static Numbers uneven_numbers() {
    Numbers x = random(n * one().shape.size(), "x");
    const std::size_t plane = std::size_t(one().shape.height) * one().shape.width;
    for (std::size_t k = 0; k < x.size(); ++k) {
      const auto channel = static_cast<real>(k / plane % one().shape.channels % 7);
      x[k] = x[k] * (1 + channel / 4) + channel - 2;
    }
    return test::rounded_to(x, type());
  }
  [[nodiscard]] static double tolerance(DataType of) {
    return of == DataType::full ? 2 * test::rounding : 1.0 / 256;
  }

  const Numbers x_ = uneven_numbers();
  const Numbers second_ = random(n * one().shape.size(), "second");
  const Numbers d_y_ = random(n * one().shape.size(), "d_y");
  const Numbers w_ = test::random_numbers(one().shape.channels, "w");
  const Numbers b_ = test::random_numbers(one().shape.channels, "b");
};

TEST_P(GroupNorm, AgreesWithNaiveLoops) {
  SingleLayer layer(spec(), n, test::joined(w_, b_));
  const Reference reference(one(), n, x_, w_, b_);
  const Numbers y = layer.forward(x_, second_);
  EXPECT_LE(test::relative_difference(y, reference.output(second_)), tolerance(type()));
  Numbers d = d_y_;
  if (one().rectifies) {
    for (std::size_t k = 0; k < y.size(); ++k) d[k] = y[k] > 0 ? d[k] : 0;
  }
  const auto [d_x, d_parameters, largest] = reference.gradients(d);
  EXPECT_LE(test::largest_difference(layer.backward(d_y_), d_x), largest * tolerance(type()));
  // What is left is the gradient of the second input.
  EXPECT_EQ(layer.d_output(), one().adds ? d : d_y_);
  EXPECT_LE(test::relative_difference(layer.d_parameters(), d_parameters), 2 * test::rounding)
      << "sums are full";
  const Numbers others = random(n * one().shape.size(), "others");
  EXPECT_LE(test::largest_difference(layer.backward(d_y_, others),
                                     test::sum(Numbers(d_x.begin(), d_x.end()), others)),
            std::max(largest, 1.0) * tolerance(type()));
  const Numbers of_parameters = layer.d_parameters();
  layer.backward_without_input(d_y_);
  EXPECT_EQ(layer.d_parameters(), of_parameters);
}

// Samples have nothing to do with each other, to the bit.
TEST_P(GroupNorm, IsOfOneSample) {
  SingleLayer all(spec(), n, test::joined(w_, b_));
  const Numbers y = all.forward(x_, second_);
  const Numbers d_x = all.backward(d_y_);
  const std::int64_t size = one().shape.size();
  const auto sample = [&](const Numbers& numbers, int k) {
    return Numbers(numbers.begin() + k * size, numbers.begin() + (k + 1) * size);
  };
  for (int k = 0; k < n; ++k) {
    SingleLayer layer(spec(), 1, test::joined(w_, b_));
    EXPECT_EQ(layer.forward(sample(x_, k), sample(second_, k)), sample(y, k));
    EXPECT_EQ(layer.backward(sample(d_y_, k)), sample(d_x, k));
  }
}

TEST_P(GroupNorm, KeepsTheVarianceOfNumbersFarFromZero) {
  if (type() != DataType::full || one().rectifies) return;
  Numbers x(x_.size());
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = real(k % 2 == 0 ? 4096 : 4097);
  SingleLayer layer(spec(), n, test::joined(w_, b_));
  EXPECT_LE(test::relative_difference(layer.forward(x), Reference(one(), n, x, w_, b_).output({})),
            1e-3);
}

TEST_P(GroupNorm, StaysFiniteWhereAllNumbersAreEqual) {
  if (one().rectifies) return;
  SingleLayer layer(spec(), n, test::joined(w_, b_));
  const Numbers y = layer.forward(Numbers(x_.size(), 5));
  // Kernels multiply and add: the mean, 5, is taken off when it is over the root of epsilon.
  const double lost = 64 * 5 / std::sqrt(1e-5) * std::numeric_limits<real>::epsilon();
  EXPECT_LE(
      test::relative_difference(y, Reference(one(), n, Numbers(x_.size(), 5), w_, b_).output({})),
      std::max(lost, tolerance(type())));
  for (const real d : layer.backward(d_y_)) EXPECT_TRUE(std::isfinite(d));
}

constexpr int width = std::max(vector_block, 4);

/// Groups of one channel, of some of a block, of a block, of several, of all, and such that begin
/// within a block.
std::vector<Case> cases() {
  std::vector<Case> all = {{{width}, 2}, {{2 * width, 16, 12}, 4}, {{2 * width, 19}, 2}};
  for (const int groups : std::set{1, 2, 4, width / 2, width, 3 * width})
    all.push_back({{3 * width, 5, 7}, groups});
  all.push_back({{3 * width, 5, 7}, 4, false, true});
  all.push_back({{3 * width, 5, 7}, 4, true, true});
  all.push_back({{2 * width, 16, 8}, width, false, true});
  all.push_back({{2 * width, 16, 8}, width, true, true});
  return all;
}

std::string name_of(const testing::TestParamInfo<GroupNorm::ParamType>& instance) {
  const auto& [one, block, type] = instance.param;
  return fmt::format("{}of{}{}{}Block{}{}", one.groups, to_string(one.shape),
                     one.adds ? "adds" : "", one.rectifies ? "rectifies" : "", block,
                     to_string(type));
}

INSTANTIATE_TEST_SUITE_P(ChannelsLast, GroupNorm,
                         testing::Combine(testing::ValuesIn(cases()), testing::Values(0),
                                          testing::Values(DataType::full, DataType::bfloat16)),
                         name_of);
#if CAROUSEL_VECTOR_BYTES > 0
INSTANTIATE_TEST_SUITE_P(Blocks, GroupNorm,
                         testing::Combine(testing::ValuesIn(cases()), testing::Values(vector_block),
                                          testing::Values(DataType::full)),
                         name_of);
#endif

/// What plain kernels have: no fusions, but channels that fill no blocks.
std::vector<Case> plain_cases() {
  std::vector<Case> all = {{{7, 3, 5}, 7}, {{15, 4, 4}, 5}, {{6}, 2}};
  for (const Case& one : cases())
    if (!one.rectifies) all.push_back(one);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Plain, GroupNorm,
                         testing::Combine(testing::ValuesIn(plain_cases()), testing::Values(1),
                                          testing::Values(DataType::full, DataType::bfloat16)),
                         name_of);
// Whose channels are no multiple of what a GPU reads at once.
INSTANTIATE_TEST_SUITE_P(Odd, GroupNorm,
                         testing::Combine(testing::Values(Case{{15, 4, 4}, 5}), testing::Values(0),
                                          testing::Values(DataType::full, DataType::bfloat16)),
                         name_of);

/// What it says where its arguments and its input do not fit.
std::string refusal(const SampleShape& shape, const Arguments& arguments) {
  ModelBuilder builder("group norm", shape, 2);
  try {
    builder.add("group_norm", "norm", arguments);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(GroupNormOp, RefusesGroupsThatDoNotFit) {
  EXPECT_THAT(refusal({6, 2, 2}, {{"groups", 4}}),
              HasSubstr("group_norm norm: 4 groups do not divide 6 channels"));
  EXPECT_THAT(refusal({6}, {{"groups", 6}}), HasSubstr("is one number, of which nothing is left"));
  EXPECT_THAT(refusal({6, 2, 2}, {}), HasSubstr("groups is missing"));
  EXPECT_EQ(refusal({6, 2, 2}, {{"groups", 6}, {"epsilon", 1e-3}}), "");
}

TEST(GroupNormOp, IsFusedWithWhatFollows) {
  ModelBuilder builder("group norm", {3, 8, 8}, 2);
  builder.add("convolution", "conv1", {{"channels", 4.0 * width}, {"kernel", 3}, {"padding", 1}});
  builder.add("group_norm", "bn1", {{"groups", 4}});
  builder.add("relu", "relu");
  const int shortcut = builder.last();
  builder.add("convolution", "conv2", {{"channels", 4.0 * width}, {"kernel", 3}, {"padding", 1}});
  builder.add("group_norm", "bn2", {{"groups", 8}, {"epsilon", 1e-3}});
  builder.add_joining("add", "add", shortcut);
  builder.add("relu", "relu");
  const Model model =
      choose_kernels(builder.model(), {.block = vector_block > 1 ? vector_block : 0});
  ASSERT_EQ(model.layers.size(), 4U);
  EXPECT_EQ(model.layers[1].label(), "group_norm+relu bn1");
  EXPECT_EQ(model.layers[3].label(), "group_norm+add+relu bn2");
  EXPECT_EQ(model.layers[3].as<op::GroupNorm>().groups, 8);
  EXPECT_EQ(model.layers[3].as<op::GroupNorm>().epsilon, 1e-3);
  // Backward makes the first one's output again, from what the convolution left.
  EXPECT_TRUE(tensors_made_again(model)[1]);
  EXPECT_FALSE(tensors_made_again(model)[3]);
}

}  // namespace
}  // namespace carousel
