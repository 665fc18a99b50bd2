// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Direct convolutions and attention of numbers in bf16, whose products are added in pairs: against
// naive loops, and by the processor's instruction against what stands for it elsewhere, to the bit.

#include "core/base/vectors.hpp"
#include "layers/blocked/attention.hpp"
#include "layers/blocked/direct_weights.hpp"
#include "layers/blocked/grids.hpp"
#include "tests/layers/blocks.hpp"
#include "tests/reference/image_layers.hpp"
#include "tests/reference/token_layers.hpp"

namespace carousel {
namespace {

using test::Numbers;

constexpr TensorFormat blocks = {DataType::bfloat16, vector_block};

/// Numbers as bf16 has them.
Numbers rounded(Numbers numbers) {
  for (real& number : numbers) number = full(to_bfloat16(static_cast<float>(number)));
  return numbers;
}

std::vector<Bfloat16> stored(const Numbers& numbers) {
  std::vector<Bfloat16> result(numbers.size());
  std::ranges::transform(numbers, result.begin(),
                         [](real number) { return to_bfloat16(static_cast<float>(number)); });
  return result;
}

Numbers full_of(const std::vector<Bfloat16>& numbers) {
  Numbers result(numbers.size());
  std::ranges::transform(numbers, result.begin(), [](Bfloat16 number) { return full(number); });
  return result;
}

/// Rounding to bf16 changes no number by more of it.
constexpr double half_unit = 1.0 / 256;

struct Case {
  int n;
  int in;  // blocks
  int out;
  SampleShape image;  // without its channels
  Window window;
};

class PairProducts : public testing::TestWithParam<Case> {
 protected:
  PairProducts()
      : n_(GetParam().n),
        in_{GetParam().in * vector_block, GetParam().image.height, GetParam().image.width},
        out_{GetParam().out * vector_block, GetParam().window.places(in_.height),
             GetParam().window.places(in_.width)},
        windows_(blocked::output_windows(GetParam().window, out_, 0)),
        strides_{.result = std::int64_t{in_.channels} * taps(), .sum = taps(), .taps = taps()},
        x_(rounded(test::random_numbers(n_ * in_.size(), "x"))),
        w_(rounded(test::random_numbers(std::int64_t{out_.channels} * in_.channels * taps(), "w"))),
        d_y_(rounded(test::random_numbers(n_ * out_.size(), "d_y"))) {}

  [[nodiscard]] static int taps() { return GetParam().window.taps(); }

  template <class Products>
  [[nodiscard]] std::vector<Bfloat16> outputs() const {
    const ExecutionSpace exec;
    const std::vector<Bfloat16> x = stored(test::in_blocks(x_, in_, blocks, n_));
    const std::vector<Bfloat16> w = stored(w_);
    std::vector<Bfloat16> packed(w.size());
    std::vector<Bfloat16> y(n_ * out_.size());
    const auto planes = planes_of<const Bfloat16>(x.data(), in_);
    blocked::pack_weights<Products>(exec, "pack", strides_, w.data(), GetParam().out, GetParam().in,
                                    vector_block, packed.data());
    blocked::convolve<Products>(exec, "convolve", windows_,
                                blocked::BlockedInput<blocked::Plain, Bfloat16>{planes, {}},
                                packed.data(), taps(), planes_of<Bfloat16>(y.data(), out_), {});
    exec.fence();
    return y;
  }

  template <class Products>
  [[nodiscard]] Numbers weight_gradients() const {
    const ExecutionSpace exec;
    const std::vector<Bfloat16> x = stored(test::in_blocks(x_, in_, blocks, n_));
    const std::vector<Bfloat16> d_y = stored(test::in_blocks(d_y_, out_, blocks, n_));
    Numbers partial(n_ * w_.size());
    Numbers d_w(w_.size());
    const auto planes = planes_of<const Bfloat16>(x.data(), in_);
    blocked::weight_gradient<Products>(
        exec, "gradient", windows_, blocked::BlockedInput<blocked::Plain, Bfloat16>{planes, {}},
        planes_of<const Bfloat16>(d_y.data(), out_), strides_, partial.data(), d_w.data());
    exec.fence();
    return d_w;
  }

  template <class Stored>
  [[nodiscard]] blocked::Planes<Stored> planes_of(Stored* data, const SampleShape& shape) const {
    return blocked::Planes<Stored>(BasicTensor<Stored>{data, n_, shape});
  }

  /// Of small numbers, whose products and sums are subnormal, or would be with one product less.
  void shrink() {
    const auto shrink = [](Numbers& numbers, int first) {
      for (std::size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = std::ldexp(numbers[i], first - static_cast<int>(i % 17));
    };
    shrink(x_, -60);
    shrink(w_, -50);
    shrink(d_y_, -55);
    for (std::size_t i = 0; i < x_.size(); i += 5) x_[i] = std::ldexp(x_[i], -70);
  }

  template <class Products>
  void expect_the_definition() const {
    const reference::Windows windows = {n_, in_, out_, GetParam().window};
    const Numbers y = full_of(outputs<Products>());
    EXPECT_LE(test::relative_difference(test::from_blocks(y, out_, blocks, n_),
                                        reference::convolution(windows, x_, w_, {})),
              half_unit);
    EXPECT_LE(
        test::relative_difference(weight_gradients<Products>(),
                                  reference::convolution_gradients(windows, x_, w_, d_y_).d_w),
        test::rounding);
  }

  template <class Products, class Same>
  void expect_same_bits() const {
    EXPECT_EQ(outputs<Products>(), outputs<Same>());
    EXPECT_EQ(weight_gradients<Products>(), weight_gradients<Same>());
  }

  int n_;
  SampleShape in_;
  SampleShape out_;
  blocked::Windows windows_;
  blocked::WeightStrides strides_;
  Numbers x_, w_, d_y_;
};

TEST_P(PairProducts, AreThoseOfTheDefinition) {
  expect_the_definition<blocked::PairProducts>();
  expect_the_definition<blocked::TileProducts>();
}

#if defined(CAROUSEL_DOT_PRODUCTS)
TEST_P(PairProducts, HaveTheSameBitsByTheInstruction) {
  if (!blocked::has_dot_products()) GTEST_SKIP() << "this processor has no VDPBF16PS";
  expect_same_bits<blocked::PairProducts, blocked::DotProducts>();
  shrink();
  expect_same_bits<blocked::PairProducts, blocked::DotProducts>();
}
#endif

#if defined(CAROUSEL_MATRIX_PRODUCTS)
TEST_P(PairProducts, OfTilesHaveTheSameBitsByTheInstruction) {
  if (!blocked::has_matrix_products()) GTEST_SKIP() << "this processor has no TDPBF16PS";
  expect_same_bits<blocked::TileProducts, blocked::MatrixProducts>();
  shrink();
  expect_same_bits<blocked::TileProducts, blocked::MatrixProducts>();
}
#endif

INSTANTIATE_TEST_SUITE_P(
    Shapes, PairProducts,
    testing::Values(Case{2, 1, 2, {0, 5, 7}, {3, 1, 1}}, Case{3, 3, 1, {0, 6, 6}, {1, 1, 0}},
                    Case{1, 2, 4, {0, 9, 8}, {3, 2, 1}}, Case{5, 4, 3, {0, 4, 4}, {1, 2, 0}},
                    Case{4, 2, 2, {0, 3, 45}, {3, 1, 1}}, Case{3, 5, 2, {0, 2, 64}, {3, 2, 1}},
                    // Long rows, whose sums wait between sets of blocks.
                    Case{2, 40, 2, {0, 1, 150}, {1, 1, 0}}));

struct Heads {
  int n;
  int heads;
  int blocks;  // of a head
  int tokens;
  bool causal = false;

  [[nodiscard]] op::Attention attributes() const { return {heads, causal}; }
};

class AttentionInPairs : public testing::TestWithParam<Heads> {
 protected:
  AttentionInPairs()
      : out_{GetParam().heads * GetParam().blocks * vector_block, GetParam().tokens, 1},
        in_{3 * out_.channels, out_.height, 1},
        x_(rounded(test::random_numbers(n() * in_.size(), "x"))),
        d_y_(rounded(test::random_numbers(n() * out_.size(), "d_y"))),
        d_x_(rounded(test::random_numbers(n() * in_.size(), "d_x"))) {}

  [[nodiscard]] static int n() { return GetParam().n; }

  template <class Products>
  [[nodiscard]] std::vector<Bfloat16> outputs() const {
    const ExecutionSpace exec;
    const std::vector<Bfloat16> x = stored(test::in_blocks(x_, in_, blocks, n()));
    std::vector<Bfloat16> y(n() * out_.size());
    ForwardArguments arguments;
    arguments.input = tensor<ConstTensor>(x, in_);
    arguments.output = tensor<Tensor>(y, out_);
    blocked::AttentionKernels<Products, Bfloat16>::forward(exec, GetParam().attributes(),
                                                           arguments);
    exec.fence();
    return y;
  }

  /// What is added to d_x_, or overwrites it.
  template <class Products>
  [[nodiscard]] std::vector<Bfloat16> gradients(bool adds) const {
    const ExecutionSpace exec;
    const std::vector<Bfloat16> x = stored(test::in_blocks(x_, in_, blocks, n()));
    std::vector<Bfloat16> d_y = stored(test::in_blocks(d_y_, out_, blocks, n()));
    std::vector<Bfloat16> d_x = stored(test::in_blocks(d_x_, in_, blocks, n()));
    BackwardArguments arguments;
    arguments.input = tensor<ConstTensor>(x, in_);
    arguments.d_output = tensor<Tensor>(d_y, out_);
    arguments.d_input = tensor<Tensor>(d_x, in_);
    arguments.adds_input = adds;
    blocked::AttentionKernels<Products, Bfloat16>::backward(exec, GetParam().attributes(),
                                                            arguments);
    exec.fence();
    return d_x;
  }

  SampleShape out_;
  SampleShape in_;
  Numbers x_, d_y_, d_x_;

 private:
  template <class Some, class Bytes>
  static Some tensor(Bytes& numbers, const SampleShape& shape) {
    return {reinterpret_cast<decltype(Some::data)>(numbers.data()), n(), shape};
  }
};

TEST_P(AttentionInPairs, IsThatOfTheDefinition) {
  const op::Attention attributes = GetParam().attributes();
  const Numbers y = test::from_blocks(full_of(outputs<blocked::PairProducts>()), out_, blocks, n());
  EXPECT_LE(test::relative_difference(y, reference::attention(n(), out_, attributes, x_)),
            2 * half_unit);
  const Numbers expected = reference::attention_gradient(n(), out_, attributes, x_, d_y_);
  const auto found = [&](bool adds) {
    return test::from_blocks(full_of(gradients<blocked::PairProducts>(adds)), in_, blocks, n());
  };
  EXPECT_LE(test::relative_difference(found(false), expected), 4 * half_unit);
  Numbers sums = expected;
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += d_x_[i];
  EXPECT_LE(test::relative_difference(found(true), sums), 4 * half_unit);
}

#if defined(CAROUSEL_DOT_PRODUCTS)
TEST_P(AttentionInPairs, HasTheSameBitsByTheInstruction) {
  if (!blocked::has_dot_products()) GTEST_SKIP() << "this processor has no VDPBF16PS";
  using blocked::DotProducts;
  EXPECT_EQ(outputs<blocked::PairProducts>(), outputs<DotProducts>());
  for (const bool adds : {false, true})
    EXPECT_EQ(gradients<blocked::PairProducts>(adds), gradients<DotProducts>(adds));
}
#endif

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionInPairs,
                         testing::Values(Heads{2, 3, 1, 7}, Heads{1, 2, 4, 64}, Heads{3, 1, 3, 33},
                                         Heads{1, 2, 2, 50}, Heads{1, 1, 4, 197},
                                         Heads{2, 2, 2, 33, true}, Heads{1, 2, 1, 130, true}));

}  // namespace
}  // namespace carousel
