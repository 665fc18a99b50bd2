// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What is asked of cuDNN, with another library in its place that computes the graphs of its front
// end, and what happens where the library has none. vendor_layers_test has the numbers.

#include <gmock/gmock.h>

#include "core/base/check.hpp"
#include "core/model/workspace.hpp"
#include "tests/core/train/matrix.hpp"
#include "tests/layers/cudnn_double.hpp"
#include "tests/layers/vendor_layers.hpp"

namespace carousel::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class VendorGraphs : public VendorConvolution {
 protected:
  VendorGraphs() { clear_cudnn(); }
  void TearDown() override {
    VendorConvolution::TearDown();
    EXPECT_EQ(cudnn_calls().open, 0);
  }
};

TEST_P(VendorGraphs, RoundGradientsOfWeightsUnlessCudnnHasOnlyFullOnes) {
  const auto expected = reference::convolution_gradients(windows_, x_, w_, d_y_);
  for (const bool rounds : {true, false}) {
    if (!rounds)
      refuse_results(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                     CUDNN_DATA_BFLOAT16);
    const std::shared_ptr<VendorHandles> handles = vendor::make_handles(ExecutionSpace());
    SingleLayer layer(spec_, n_, w_, {}, handles.get());
    (void)layer.forward(x_);
    layer.backward_without_input(d_y_);
    const Numbers found = layer.d_parameters();
    EXPECT_EQ(found == rounded_to(found, DataType::bfloat16), rounds);
    EXPECT_LE(relative_difference(found, expected.d_w), rounds ? tolerance() : rounding);
  }
}

TEST_P(VendorGraphs, NormaliseOnTheWay) {
  expect_normalised();
  EXPECT_THAT(cudnn_calls().runs, ::testing::Contains(HasSubstr("relu")));
}

TEST_P(VendorGraphs, LeaveTheNormToUsWhereCudnnHasNone) {
  refuse_operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  expect_normalised();
  EXPECT_THAT(cudnn_calls().runs, ::testing::Not(::testing::Contains(HasSubstr("relu"))));
}

TEST_P(VendorGraphs, AreMadeOncePerPassAndShape) {
  SingleLayer layer(spec_, n_, w_, {}, handles_.get());
  SingleLayer other(spec_, n_, w_, {}, handles_.get());
  for (int k = 0; k < 2; ++k) {
    (void)layer.forward(x_);
    (void)layer.backward(d_y_);
    (void)other.forward(x_);
  }
  EXPECT_EQ(cudnn_calls().plans, 3);
  EXPECT_THAT(std::vector(cudnn_calls().runs.begin(), cudnn_calls().runs.begin() + 3),
              ElementsAre("forward 2x8x8x8 16x8x3x3 = 2x16x4x4 bf16",
                          "d_weights 2x8x8x8 2x16x4x4 = 16x8x3x3 bf16",
                          "d_input 2x16x4x4 16x8x3x3 = 2x8x8x8 bf16"));
}

TEST_P(VendorGraphs, PassOverEnginesThatAskForTooMuchOrGiveOtherBits) {
  offer_engines(
      {{.workspace = graph_workspace - 255},
       {.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}},
       {.notes = {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}},
       {.workspace = graph_workspace - 256, .notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}}});
  SingleLayer layer(spec_, n_, w_, {}, handles_.get());
  (void)layer.forward(x_);
  EXPECT_THAT(cudnn_calls().engines, ElementsAre(3));
}

TEST_P(VendorGraphs, TakeNoTensorCoresForFullNumbers) {
  offer_engines({{.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}},
                 {.notes = {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}},
                 {.notes = {CUDNN_NUMERICAL_NOTE_FFT}}});
  ConvolutionCase full = GetParam();
  full.type = DataType::full;
  SingleLayer layer(spec_of(full), n_, w_, {}, handles_.get());
  (void)layer.forward(x_);
  EXPECT_THAT(cudnn_calls().engines, ElementsAre(2));
}

TEST_P(VendorGraphs, NameALayerThatNobodyComputes) {
  offer_engines({{.workspace = graph_workspace + 1}});
  SingleLayer layer(spec_, n_, w_, {}, handles_.get());
  try {
    (void)layer.forward(x_);
    ADD_FAILURE() << "it was computed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("convolution layer: cuDNN has no kernels for it"));
    EXPECT_THAT(error.what(), HasSubstr("engine.vendor = \"none\""));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, VendorGraphs,
                         ::testing::Values(ConvolutionCase{
                             2, 8, 8, 8, 16, {3, 2, 1}, DataType::bfloat16}));

/// A plan may be compiled and loaded, which may take the whole GPU, while a message waits for
/// another rank.
TEST(VendorRuns, PlanNothingInSteps) {
  const RandomDataset file;
  const Dataset dataset(file.path());
  ASSERT_NE(dataset.test().samples() % 2, 0) << "the last batch is another one";
  for (const char* name : {"resnet", "vit"}) {
    for (const Placement placement : {Placement::single, Placement::pipeline}) {
      SmallDeck deck;
      deck.model = {.name = name, .depth = 8, .stem = Stem::cifar};
      if (deck.model.name == "vit")
        deck.model = {.name = "vit", .depth = 2, .patch = 4, .width = 32, .heads = 2};
      deck.parallel = {
          .rule = RuleKind::cdp_v2, .placement = placement, .micro_batches = 2, .stages = 2};
      deck.train.micro_batch_size = 2;
      deck.train.steps = 1;
      deck.kernels = {.type = DataType::bfloat16, .vendor = VendorKernels::graphs};
      deck.vendor = vendor::make_handles;
      deck.rehearses = true;
      if (placement == Placement::single) deck.queues = 2;
      clear_cudnn();
      SmallRun run(ExecutionSpace(), dataset, deck);
      const int plans = cudnn_calls().plans;
      EXPECT_GT(plans, 0);
      (void)run.trainer().run();
      EXPECT_FALSE(run.story().evaluations.empty());
      EXPECT_EQ(cudnn_calls().plans, plans) << name << " " << to_string(placement);
    }
  }
}

TEST(VendorRuns, KnowWhichGradientsAreSlowBeforeTheyBegin) {
  const RandomDataset file;
  const Dataset dataset(file.path());
  for (const bool rounds : {true, false}) {
    for (const Placement placement : {Placement::single, Placement::replicated}) {
      clear_cudnn();
      if (!rounds)
        refuse_results(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                       CUDNN_DATA_BFLOAT16);
      SmallDeck deck;
      deck.model = {.name = "resnet", .depth = 8, .stem = Stem::cifar};
      deck.parallel = {
          .rule = RuleKind::cdp_v2, .placement = placement, .micro_batches = 2, .stages = 2};
      deck.train.micro_batch_size = 1;
      deck.kernels = {.type = DataType::bfloat16, .vendor = VendorKernels::graphs};
      deck.vendor = vendor::make_handles;
      deck.rehearses = true;
      SmallRun run(ExecutionSpace(), dataset, deck);
      const auto convolutions = std::ranges::count_if(run.model().layers, may_be_slow);
      EXPECT_EQ(convolutions, 9);
      EXPECT_EQ(run.trainer().slow_gradients(), rounds ? 0U : 9U);
    }
  }
  clear_cudnn();
}

}  // namespace
}  // namespace carousel::test
