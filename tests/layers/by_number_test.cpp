// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Functions of one number, in every order and type of tensors, against PyTorch's formulas in double
// precision.

#include <fmt/core.h>

#include <limits>
#include <set>

#include "core/base/vectors.hpp"
#include "core/model/builder.hpp"
#include "core/model/kernels.hpp"
#include "tests/layers/single_layer.hpp"

namespace carousel {
namespace {

using test::Numbers;
using test::SingleLayer;

constexpr int n = 3;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

struct Function {
  const char* kind;
  Arguments arguments;
  double (*value)(double x);
  double (*gradient)(double x);
  double steepness = 1;  // how much faster than x its value changes
};
// NOLINTNEXTLINE(readability-identifier-naming): as GoogleTest calls it
void PrintTo(const Function& function, std::ostream* out) {
  *out << function.kind;
}

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

/// Of GELU by tanh.
double bend(double x) {
  return std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
}

const std::vector<Function> functions = {
    {"silu",
     {},
     [](double x) { return x / (1 + std::exp(-x)); },
     [](double x) { return logistic(x) * (1 + x * (1 - logistic(x))); }},
    {"tanh",
     {},
     [](double x) { return std::tanh(x); },
     [](double x) { return 1 - std::tanh(x) * std::tanh(x); }},
    {"sigmoid", {}, logistic, [](double x) { return logistic(x) * (1 - logistic(x)); }},
    {"leaky_relu",
     {},
     [](double x) { return x > 0 ? x : 0.01 * x; },
     [](double x) { return x > 0 ? 1 : 0.01; }},
    {"leaky_relu",
     {{"negative_slope", -0.5}},
     [](double x) { return x > 0 ? x : -0.5 * x; },
     [](double x) { return x > 0 ? 1 : -0.5; }},
    {"elu",
     {},
     [](double x) { return x <= 0 ? std::expm1(x) : x; },
     [](double x) { return x <= 0 ? std::exp(x) : 1; }},
    {"elu",
     {{"alpha", 2.5}},
     [](double x) { return x <= 0 ? 2.5 * std::expm1(x) : x; },
     [](double x) { return x <= 0 ? 2.5 * std::exp(x) : 1; }},
    {"relu6",
     {},
     [](double x) { return x > 6 ? 6 : (x < 0 ? 0 : x); },
     [](double x) { return x <= 0 || x >= 6 ? 0.0 : 1.0; }},
    {"hard_sigmoid",
     {},
     [](double x) { return x < -3 ? 0 : (x > 3 ? 1 : (x + 3) / 6); },
     [](double x) { return x <= -3 || x >= 3 ? 0.0 : 1.0 / 6; }},
    {"hard_swish",
     {},
     [](double x) { return x < -3 ? 0 : (x > 3 ? x : x * (x + 3) / 6); },
     [](double x) { return x < -3 ? 0 : (x > 3 ? 1 : x / 3 + 0.5); }},
    {"gelu_tanh",
     {},
     [](double x) { return x / (1 + std::exp(-2 * bend(x))); },
     [](double x) {
       const double slope = 2 * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
       return logistic(2 * bend(x)) * (1 + x * slope * logistic(-2 * bend(x)));
     },
     10},
    {"softplus",
     {},
     [](double x) { return x > 20 ? x : std::log1p(std::exp(x)); },
     [](double x) { return x > 20 ? 1 : logistic(x); }},
    {"softplus",
     {{"beta", 2}, {"threshold", 3}},
     [](double x) { return 2 * x > 3 ? x : std::log1p(std::exp(2 * x)) / 2; },
     [](double x) { return 2 * x > 3 ? 1 : logistic(2 * x); }},
};

/// Each in plain order, in blocks, and with all channels side by side, in either type.
class ByNumber : public testing::TestWithParam<std::tuple<Function, int, DataType>> {
 protected:
  [[nodiscard]] static const Function& function() { return std::get<0>(GetParam()); }
  [[nodiscard]] static DataType type() { return std::get<2>(GetParam()); }

  [[nodiscard]] static LayerSpec spec(const SampleShape& shape) {
    ModelBuilder builder("number by number", shape, 2);
    builder.add(function().kind, "layer", function().arguments);
    LayerSpec spec = builder.model().layers.back();
    const int block = std::get<1>(GetParam());
    spec.inputs[0].format = {type(), block == 0 ? shape.channels : block};
    choose_kernels(spec, {.block = block, .type = type()});
    EXPECT_EQ(spec.converted, Converted::nothing);
    EXPECT_EQ(spec.output_format, spec.inputs[0].format);
    return spec;
  }

  /// As the type stores it; what is less than a full number tells from 0 is no number of its own.
  static void expect_near(const Numbers& actual, const std::vector<double>& expected) {
    constexpr double least = 1e-35;
    const double tolerance = type() == DataType::full
                                 ? 30 * function().steepness * std::numeric_limits<real>::epsilon()
                                 : 1.01 / 256;
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      if (std::isnan(expected[k]))
        EXPECT_TRUE(std::isnan(actual[k])) << actual[k];
      else if (std::isinf(expected[k]))
        EXPECT_EQ(actual[k], expected[k]);
      else
        EXPECT_NEAR(actual[k], expected[k], tolerance * std::abs(expected[k]) + least);
    }
  }
  template <class Of>
  [[nodiscard]] static std::vector<double> all(const Numbers& numbers, const Of& of) {
    std::vector<double> result;
    for (std::size_t k = 0; k < numbers.size(); ++k) result.push_back(of(k));
    return result;
  }
  [[nodiscard]] static Numbers random(std::size_t size, const char* purpose, real scale = 1) {
    Numbers numbers = test::random_numbers(size, purpose);
    for (real& number : numbers) number *= scale;
    return test::rounded_to(numbers, type());
  }

  const SampleShape shape_ = {4 * std::max(vector_block, 2), 5, 7};  // no whole chunks
};

TEST_P(ByNumber, AgreesWithTheFormula) {
  Numbers x = random(n * shape_.size(), "x", 20);
  // Small numbers, of which 1 plus or minus them would leave nothing.
  for (std::size_t k = 0; k < 40; ++k) x[k] *= std::pow(real(2), -static_cast<real>(k) / 2);
  x = test::rounded_to(x, type());
  const Numbers d_y = random(x.size(), "d_y");
  const Numbers others = random(x.size(), "others");
  SingleLayer layer(spec(shape_), n);
  expect_near(layer.forward(x), all(x, [&](std::size_t k) { return function().value(x[k]); }));
  const auto d_x = [&](std::size_t k) { return d_y[k] * function().gradient(x[k]); };
  if (type() == DataType::full) {
    // Relative to terms that may cancel.
    const Numbers actual = layer.backward(d_y);
    for (std::size_t k = 0; k < x.size(); ++k)
      EXPECT_NEAR(actual[k], d_x(k), 30 * std::numeric_limits<real>::epsilon() * std::abs(d_y[k]));
    const Numbers sum = layer.backward(d_y, others);
    for (std::size_t k = 0; k < x.size(); ++k)
      EXPECT_NEAR(sum[k], actual[k] + others[k], std::numeric_limits<real>::epsilon());
  } else {
    expect_near(layer.backward(d_y), all(x, d_x));
    // Of two terms that cancel, their own rounding is left.
    const Numbers sum = layer.backward(d_y, others);
    for (std::size_t k = 0; k < x.size(); ++k) {
      const double expected = others[k] + d_x(k);
      EXPECT_NEAR(
          sum[k], expected,
          1.01 / 256 * std::abs(expected) + 1e-6 * std::abs(static_cast<double>(others[k])));
    }
  }
}

// In bf16, too, which has the same range.
TEST_P(ByNumber, TakesWhatIsLargeOrNoNumber) {
  const std::vector<double> values = {0,    -0.0,  100,          -100,      1e4,   -1e4,
                                      1e38, -1e38, infinity,     -infinity, 1e-30, -1e-30,
                                      86.5, -86.5, not_a_number, 1,         -1};
  const SampleShape shape = {4 * std::max(vector_block, 2), 5};
  Numbers x(static_cast<std::size_t>(shape.size()));
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<real>(values[k % values.size()]);
  x = test::rounded_to(x, type());
  SingleLayer layer(spec(shape), 1);
  expect_near(layer.forward(x), all(x, [&](std::size_t k) { return function().value(x[k]); }));
  expect_near(layer.backward(Numbers(x.size(), 1)),
              all(x, [&](std::size_t k) { return function().gradient(x[k]); }));
}

std::string name_of(const testing::TestParamInfo<ByNumber::ParamType>& instance) {
  const auto& [function, block, type] = instance.param;
  return fmt::format("{}{}Block{}{}", function.kind, function.arguments.empty() ? "" : "Given",
                     block, to_string(type));
}

INSTANTIATE_TEST_SUITE_P(Functions, ByNumber,
                         testing::Combine(testing::ValuesIn(functions),
                                          testing::ValuesIn(std::set{0, 1, vector_block}),
                                          testing::Values(DataType::full, DataType::bfloat16)),
                         name_of);

// The formulas above are each other's.
TEST(Formulas, HaveTheGradientsThatDifferencesHave) {
  constexpr double step = 1e-5;
  for (const Function& function : functions) {
    for (const double x : {-7.0, -1.5, -0.2, 0.3, 1.0, 4.0})
      EXPECT_NEAR(function.gradient(x),
                  (function.value(x + step) - function.value(x - step)) / (2 * step), 1e-9)
          << function.kind << " at " << x;
  }
}

}  // namespace
}  // namespace carousel
