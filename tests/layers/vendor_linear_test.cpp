// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Linear layers by cuBLASLt, with another library in its place: numbers, the products asked for,
// and what happens where the library has none.

#include <gmock/gmock.h>

#include "core/base/bfloat16.hpp"
#include "core/model/kernels.hpp"
#include "core/model/op.hpp"
#include "core/model/workspace.hpp"
#include "layers/vendor/handles.hpp"
#include "layers/vendor/matmul.hpp"
#include "layers/vendor/vendor.hpp"
#include "tests/core/train/matrix.hpp"
#include "tests/layers/cublas_double.hpp"
#include "tests/layers/stored.hpp"
#include "tests/reference/layers.hpp"

namespace carousel::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Shape {
  int n;
  int in;
  int out;
  int tokens = 1;
  DataType type = DataType::full;
};
// NOLINTNEXTLINE(readability-identifier-naming): as GoogleTest calls it
void PrintTo(const Shape& shape, std::ostream* out) {
  *out << shape.n << " of " << shape.tokens << " x " << shape.in << " to " << shape.out << " in "
       << to_string(shape.type);
}

class VendorLinear : public ::testing::TestWithParam<Shape> {
 protected:
  VendorLinear() {
    clear_cublas();
    const auto [n, in, out, tokens, type] = GetParam();
    spec_.kind = &op_named("linear");
    spec_.name = "0";
    spec_.inputs = {{-1, {in, tokens, 1}, {type, tokens > 1 ? in : 1}}};
    spec_.output = {out, tokens, 1};
    spec_.output_format = {type, tokens > 1 ? out : 1};
    spec_.parameters = {{.name = "0.weight", .shape = {out, in}, .type = type},
                        {.name = "0.bias", .shape = {out}}};
    rows_ = n * tokens;
    const auto size = [](int a, int b) { return static_cast<std::size_t>(a) * b; };
    x_ = rounded_to(random_numbers(size(rows_, in), "x"), type);
    w_ = rounded_to(random_numbers(size(out, in), "w"), type);
    b_ = random_numbers(static_cast<std::size_t>(out), "b");
    d_y_ = rounded_to(random_numbers(size(rows_, out), "d_y"), type);
    parameters_ = stored(w_, type);
    parameters_.resize(static_cast<std::size_t>(spec_.parameters[0].stored_bytes()));
    const std::vector<std::byte> bias = stored(b_, DataType::full);
    parameters_.insert(parameters_.end(), bias.begin(), bias.end());
    choose_kernels(spec_, {.block = 0, .type = type, .vendor = VendorKernels::products});
  }
  void TearDown() override {
    layer_.reset();
    handles_.reset();
    EXPECT_EQ(cublas_calls().open, 0);
  }

  void make() {
    workspace_.resize(static_cast<std::size_t>(spec_.workspace_bytes(GetParam().n)));
    handles_ = vendor::make_handles(ExecutionSpace());
    layer_ = make_layer(spec_, GetParam().n,
                        {.exec = {}, .workspace = workspace_, .vendor = handles_.get()});
  }
  static real* numbers(std::vector<std::byte>& bytes) {
    return reinterpret_cast<real*>(bytes.data());
  }
  [[nodiscard]] Numbers forward() {
    const auto [n, in, out, tokens, type] = GetParam();
    x_stored_ = stored(x_, type);
    y_stored_.resize(static_cast<std::size_t>(rows_ * out * size_of(type)));
    layer_->forward(ExecutionSpace(), {.input = {numbers(x_stored_), n, spec_.input()},
                                       .output = {numbers(y_stored_), n, spec_.output},
                                       .parameters = numbers(parameters_)});
    return restored(y_stored_, type);
  }
  struct Gradients {
    Numbers parameters, input;
  };
  [[nodiscard]] Gradients backward(bool adds = false) {
    const auto [n, in, out, tokens, type] = GetParam();
    x_stored_ = stored(x_, type);
    y_stored_ = stored(d_y_, type);
    d_x_stored_ = stored(x_, type);  // of other layers
    d_parameters_.assign(static_cast<std::size_t>(spec_.parameter_size()), real(1e30));
    layer_->backward(ExecutionSpace(), {.input = {numbers(x_stored_), n, spec_.input()},
                                        .output = {},
                                        .d_output = {numbers(y_stored_), n, spec_.output},
                                        .d_input = {numbers(d_x_stored_), n, spec_.input()},
                                        .parameters = numbers(parameters_),
                                        .d_parameters = d_parameters_.data(),
                                        .adds_input = adds});
    return {d_parameters_, restored(d_x_stored_, type)};
  }
  /// Of what is stored in the type; sums are in full numbers.
  [[nodiscard]] static real tolerance() {
    return GetParam().type == DataType::full ? rounding : real(1) / 128;
  }

  LayerSpec spec_;
  int rows_ = 0;
  Numbers x_, w_, b_, d_y_;
  std::vector<std::byte> parameters_;
  std::vector<std::byte> workspace_;
  std::vector<std::byte> x_stored_, y_stored_, d_x_stored_;
  Numbers d_parameters_;
  std::shared_ptr<VendorHandles> handles_;
  std::unique_ptr<Layer> layer_;
};

TEST_P(VendorLinear, IsLeftToTheVendor) {
  EXPECT_EQ(spec_.kernels, Kernels::vendor);
  EXPECT_EQ(spec_.conversion_bytes(GetParam().n), 0);
}

TEST_P(VendorLinear, Forward) {
  make();
  EXPECT_LE(relative_difference(forward(), reference::linear(x_, w_, b_, rows_)), tolerance());
}

TEST_P(VendorLinear, Backward) {
  make();
  const auto expected = reference::linear_gradients(x_, w_, d_y_, rows_);
  Numbers d_expected(expected.d_w);
  d_expected.insert(d_expected.end(), expected.d_b.begin(), expected.d_b.end());
  const Gradients found = backward();
  EXPECT_LE(relative_difference(found.parameters, d_expected), rounding) << "they are full";
  EXPECT_LE(relative_difference(found.input, expected.d_x), tolerance());

  Numbers sum = expected.d_x;
  for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += x_[k];
  EXPECT_LE(relative_difference(backward(true).input, sum), tolerance());
}

TEST_P(VendorLinear, AddsUpTheBiasWhereTheProductCannot) {
  refuse_epilogue(CUBLASLT_EPILOGUE_BGRADB);
  make();
  const auto expected = reference::linear_gradients(x_, w_, d_y_, rows_);
  Numbers d_expected(expected.d_w);
  d_expected.insert(d_expected.end(), expected.d_b.begin(), expected.d_b.end());
  EXPECT_LE(relative_difference(backward().parameters, d_expected), rounding);
  EXPECT_THAT(cublas_calls().products.front(), ::testing::Not(HasSubstr("sums")));
}

TEST_P(VendorLinear, ChoosesOncePerShapeAndAlignment) {
  make();
  std::map<std::vector<const void*>, int> asked;  // with memory at these places
  for (int k = 0; k < 5; ++k) {
    const int before = cublas_calls().heuristics;
    (void)forward();
    (void)backward();
    const std::vector<const void*> places = {x_stored_.data(), y_stored_.data(), d_x_stored_.data(),
                                             d_parameters_.data()};
    const auto [known, is_new] = asked.try_emplace(places, 0);
    if (!is_new) {
      EXPECT_EQ(cublas_calls().heuristics, before);
    }
  }
  EXPECT_EQ(cublas_calls().products.size(), 15U);
}

INSTANTIATE_TEST_SUITE_P(Shapes, VendorLinear,
                         ::testing::Values(Shape{1, 1, 1}, Shape{16, 64, 10}, Shape{7, 13, 5},
                                           Shape{3, 8, 24, 5},
                                           Shape{16, 64, 10, 1, DataType::bfloat16},
                                           Shape{7, 13, 5, 1, DataType::bfloat16},
                                           Shape{3, 8, 24, 5, DataType::bfloat16}));

using VendorLinearOnce = VendorLinear;

TEST_P(VendorLinearOnce, AsksForTheProductsOfPyTorch) {
  make();
  (void)forward();
  (void)backward();
  EXPECT_THAT(
      cublas_calls().products,
      ElementsAre("T 13x5 N 13x7 = 5x7 bias", "N 13x7 T 5x7 = 13x5 sums", "N 13x5 N 5x7 = 13x7"));
}

TEST_P(VendorLinearOnce, NamesALayerThatNobodyMultiplies) {
  need_workspace(static_cast<std::size_t>(product_workspace) + 1);
  make();
  try {
    (void)forward();
    ADD_FAILURE() << "it was multiplied";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("linear 0: cuBLASLt has no product of 13 x 5 by 13 x 7"));
    EXPECT_THAT(error.what(), HasSubstr("engine.vendor = \"none\""));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, VendorLinearOnce, ::testing::Values(Shape{7, 13, 5}));

/// 256 + 1 is no number of bf16.
TEST(VendorProduct, RoundsOnlyWhatItStores) {
  clear_cublas();
  const std::vector<Bfloat16> a = {to_bfloat16(256), to_bfloat16(1), to_bfloat16(-256), {}};
  const std::vector<Bfloat16> b(4, to_bfloat16(1));
  std::vector<Bfloat16> result(1);
  const std::shared_ptr<VendorHandles> handles = vendor::make_handles(ExecutionSpace());
  vendor::Product product(handles->cublas,
                          {.layer = "sum",
                           .a = {1, 4, DataType::bfloat16},
                           .b = {4, 1, DataType::bfloat16},
                           .result = {1, 1, DataType::bfloat16}},
                          product_workspace);
  std::vector<std::byte> workspace(static_cast<std::size_t>(product_workspace));
  product(ExecutionSpace(),
          {.a = a.data(), .b = b.data(), .result = result.data(), .workspace = workspace});
  EXPECT_EQ(to_float(result.front()), 1);
}

TEST(VendorChoice, LeavesOthersAlone) {
  LayerSpec spec;
  spec.kind = &op_named("linear");
  spec.name = "tokens";
  spec.inputs = {{-1, {8, 5, 1}}};  // features one behind the other
  spec.output = {8, 5, 1};
  spec.parameters = {{"weight", {8, 8}}, {"bias", {8}}};
  choose_kernels(spec, {.vendor = VendorKernels::products});
  EXPECT_EQ(spec.kernels, Kernels::portable);
  spec.inputs.front().format.block = 8;
  spec.inputs.front().format.type = DataType::bfloat16;
  choose_kernels(spec, {.block = 0, .vendor = VendorKernels::products});
  EXPECT_EQ(spec.output_format, (TensorFormat{DataType::full, 8}));
  EXPECT_NE(spec.converted, Converted::nothing) << "factors are of two types";
}

/// Whole runs: the numbers of our own kernels but for rounding, and one placement's bits in others.
TEST(VendorRuns, TrainAsOurOwnKernelsDo) {
  const RandomDataset file;
  const Dataset dataset(file.path());
  for (const DataType type : {DataType::full, DataType::bfloat16}) {
    SmallDeck deck = deck_of({.rule = RuleKind::cdp_v2, .micro_batches = 4, .stages = 4}, false);
    deck.train.steps = 4;
    deck.kernels.type = type;
    SmallRun own(ExecutionSpace(), dataset, deck);
    (void)own.trainer().run();
    deck.kernels.vendor = VendorKernels::products;
    deck.vendor = vendor::make_handles;
    clear_cublas();
    SmallRun single(ExecutionSpace(), dataset, deck);
    (void)single.trainer().run();
    EXPECT_FALSE(cublas_calls().products.empty());
    SmallRun ring(ExecutionSpace(), dataset, placed(deck, Placement::replicated));
    (void)ring.trainer().run();
    expect_same(snapshot(ring.trainer()), snapshot(single.trainer()));
    const Snapshot expected = snapshot(own.trainer());
    const Snapshot found = snapshot(single.trainer());
    for (std::size_t k = 0; k < found.parameters.size(); ++k)
      EXPECT_LE(relative_difference(found.parameters[k].values, expected.parameters[k].values),
                type == DataType::full ? 100 * rounding : real(0.02));
  }
}

/// What is asked of the library while messages are under way might wait for them.
TEST(VendorRuns, ChooseNothingInSteps) {
  const RandomDataset file;
  const Dataset dataset(file.path());
  ASSERT_NE(dataset.test().samples() % 5, 0) << "the last batch is another one";
  for (const DataType type : {DataType::full, DataType::bfloat16}) {
    for (const Placement placement : {Placement::single, Placement::model, Placement::sharded}) {
      SmallDeck deck = placed(
          deck_of({.rule = RuleKind::cdp_v2, .micro_batches = 4, .stages = 4}, false), placement);
      deck.train.steps = 2;
      deck.kernels = {.type = type, .vendor = VendorKernels::products};
      deck.vendor = vendor::make_handles;
      deck.rehearses = true;
      clear_cublas();
      SmallRun run(ExecutionSpace(), dataset, deck);
      const int chosen = cublas_calls().heuristics;
      EXPECT_GT(chosen, 0);
      (void)run.trainer().run();
      EXPECT_FALSE(run.story().evaluations.empty());
      EXPECT_EQ(cublas_calls().heuristics, chosen) << to_string(placement);
    }
  }
}

}  // namespace
}  // namespace carousel::test
