// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The numbers of layers that a vendor's libraries compute, alone and in whole runs: on GPUs by
// these libraries, on hosts by others in their place.

#include "tests/layers/vendor_layers.hpp"
#include "core/model/builder.hpp"
#include "tests/core/train/matrix.hpp"
#include "tests/reference/token_layers.hpp"

namespace carousel::test {
namespace {

TEST_P(VendorConvolution, Forward) {
  EXPECT_EQ(spec_.kernels, Kernels::vendor);
  SingleLayer layer(spec_, n_, w_, {}, handles_.get());
  const Numbers expected = reference::convolution(windows_, x_, w_, {});
  EXPECT_LE(relative_difference(layer.forward(x_), expected), tolerance());
}

TEST_P(VendorConvolution, Backward) {
  SingleLayer layer(spec_, n_, w_, {}, handles_.get());
  (void)layer.forward(x_);
  const auto expected = reference::convolution_gradients(windows_, x_, w_, d_y_);
  if (GetParam().in > 0) {
    EXPECT_LE(relative_difference(layer.backward(d_y_), expected.d_x), tolerance());
    EXPECT_EQ(layer.d_output(), d_y_);
    const Numbers others = numbers(n_ * spec_.input().size(), "others");
    EXPECT_LE(relative_difference(layer.backward(d_y_, others), sum(others, expected.d_x)),
              tolerance());
  }
  layer.backward_without_input(d_y_);
  EXPECT_LE(relative_difference(layer.d_parameters(), expected.d_w), tolerance());
}

TEST_P(VendorConvolution, NormalisesOnTheWay) {
  if (GetParam().in > 0) expect_normalised();  // images of files have no batch norm
}

std::vector<ConvolutionCase> cases() {
  constexpr Window three = {3, 1, 1};
  std::vector<ConvolutionCase> all = {
      {2, -3, 17, 15, 8, {7, 2, 3}},  // stem of ImageNet
      {2, -3, 12, 12, 16, three},     // stem of CIFAR
      {2, -1, 8, 8, 8, three},        //
      {3, 8, 6, 5, 16, three},        // inside a group
      {2, 8, 8, 8, 16, {3, 2, 1}},    // from group to group
      {2, 8, 9, 7, 16, {1, 2, 0}},    // its shortcut
      {2, 32, 5, 5, 8, {1, 1, 0}},    // bottleneck
      {1, 8, 1, 1, 8, three},         // one number in padding
  };
  const std::size_t count = all.size();
  for (std::size_t k = 0; k < count; ++k) {
    all.push_back(all[k]);
    all.back().type = DataType::bfloat16;
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Shapes, VendorConvolution, ::testing::ValuesIn(cases()));

/// Layers of vision transformers, of tokens whose features lie side by side.
class VendorTokens : public ::testing::TestWithParam<DataType> {
 protected:
  VendorTokens() { handles_ = vendor::make_handles(ExecutionSpace()); }
  void TearDown() override { handles_.reset(); }
  /// The one layer that `append` gives a model.
  template <class Append>
  [[nodiscard]] static LayerSpec spec_of(const SampleShape& input, const Append& append) {
    ModelBuilder builder("tokens", input, 2);
    append(builder);
    LayerSpec spec = builder.model().layers.back();
    if (!spec.is("patch_embedding")) spec.inputs.front().format = {GetParam(), input.channels};
    choose_kernels(spec, {.block = 0, .type = GetParam(), .vendor = VendorKernels::graphs});
    return spec;
  }
  [[nodiscard]] static Numbers numbers(std::int64_t size, const char* name, real factor = 1) {
    Numbers all = random_numbers(static_cast<std::size_t>(size), name);
    for (real& number : all) number *= factor;
    return rounded_to(all, GetParam());
  }
  static void expect_near(const Numbers& actual, const Numbers& expected) {
    EXPECT_LE(relative_difference(actual, expected),
              GetParam() == DataType::full ? 5 * rounding : 1.0 / 64);
  }

  static constexpr int n = 3;
  std::shared_ptr<VendorHandles> handles_;
};

TEST_P(VendorTokens, AreMadeOfPatches) {
  const SampleShape image = {3, 12, 8};
  const SampleShape patches = {16, 3, 2};
  const SampleShape output = {16, 7};
  const LayerSpec spec = spec_of(image, [](ModelBuilder& builder) {
    builder.add("patch_embedding", "patches", {{"features", 16}, {"patch", 4}});
  });
  EXPECT_EQ(spec.kernels, Kernels::vendor);
  const Numbers x = numbers(n * image.size(), "x");
  const Numbers class_token = numbers(16, "class");
  const Numbers w = numbers(16 * 3 * 16, "w");
  const Numbers b = numbers(16, "b");
  const Numbers positions = numbers(output.size(), "positions");
  const Numbers d_y = numbers(n * output.size(), "d_y");
  SingleLayer layer(spec, n, joined(joined(class_token, w), joined(b, positions)), {},
                    handles_.get());
  const reference::Windows windows = {n, image, patches, {4, 4, 0}};
  expect_near(layer.forward(x),
              reference::with_positions(n, output, reference::convolution(windows, x, w, b),
                                        class_token, positions));
  layer.backward_without_input(d_y);
  const auto of_positions = reference::position_gradients(n, output, d_y);
  const auto gradients = reference::convolution_gradients(windows, x, w, of_positions.d_patches);
  EXPECT_LE(relative_difference(layer.d_parameters(),
                                joined(joined(of_positions.d_class_token, gradients.d_w),
                                       joined(gradients.d_b, of_positions.d_positions))),
            rounding)
      << "they are full";
}

TEST_P(VendorTokens, AreLinear) {
  const SampleShape shape = {16, 19};
  const SampleShape output = {24, 19};
  const LayerSpec spec = spec_of(shape, [](ModelBuilder& builder) {
    builder.add("linear", "linear", {{"features", 24}});
  });
  EXPECT_EQ(spec.kernels, Kernels::vendor);
  const Numbers x = numbers(n * shape.size(), "x");
  const Numbers w = numbers(24 * 16, "w");
  const Numbers b = numbers(24, "b");
  const Numbers d_y = numbers(n * output.size(), "d_y");
  SingleLayer layer(spec, n, joined(w, b), {}, handles_.get());
  const reference::Windows pixels = {n, shape, output, {}};
  const auto gradients = reference::convolution_gradients(pixels, x, w, d_y);
  expect_near(layer.forward(x), reference::convolution(pixels, x, w, b));
  expect_near(layer.backward(d_y), gradients.d_x);
  EXPECT_LE(relative_difference(layer.d_parameters(), joined(gradients.d_w, gradients.d_b)),
            rounding)
      << "they are full";
  const Numbers others = numbers(n * shape.size(), "others");
  expect_near(layer.backward(d_y, others), sum(others, gradients.d_x));
}

TEST_P(VendorTokens, AttendToOneAnother) {
  const SampleShape shape = {32, 19};
  const SampleShape input = {3 * shape.channels, shape.height};
  for (const op::Attention& attributes :
       {op::Attention{1}, op::Attention{2}, op::Attention{2, true}}) {
    const LayerSpec spec = spec_of(input, [&](ModelBuilder& builder) {
      builder.add("attention", "attention",
                  {{"heads", 1.0 * attributes.heads}, {"causal", attributes.causal ? 1.0 : 0.0}});
    });
    EXPECT_EQ(spec.kernels == Kernels::vendor, GetParam() == DataType::bfloat16)
        << "cuDNN has it in bf16 alone";
    const Numbers x = numbers(n * input.size(), "x", 4);
    const Numbers d_y = numbers(n * shape.size(), "d_y");
    SingleLayer layer(spec, n, {}, {}, handles_.get());
    const Numbers d_x = reference::attention_gradient(n, shape, attributes, x, d_y);
    expect_near(layer.forward(x), reference::attention(n, shape, attributes, x));
    expect_near(layer.backward(d_y), d_x);
    const Numbers others = numbers(n * input.size(), "others");
    expect_near(layer.backward(d_y, others), sum(d_x, others));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, VendorTokens,
                         ::testing::Values(DataType::full, DataType::bfloat16));

/// Whole runs: the numbers of our own kernels but for rounding, and one placement's bits in others.
class VendorNetworks : public ::testing::TestWithParam<DataType> {
 protected:
  static void train(SmallDeck deck) {
    const RandomDataset file;
    const Dataset dataset(file.path());
    deck.parallel = {.rule = RuleKind::cdp_v2, .micro_batches = 2, .stages = 2};
    deck.train.steps = 3;
    deck.train.micro_batch_size = 2;
    deck.kernels.type = GetParam();
    SmallRun own(ExecutionSpace(), dataset, deck);
    (void)own.trainer().run();
    deck.kernels.vendor = VendorKernels::graphs;
    deck.vendor = vendor::make_handles;
    SmallRun single(ExecutionSpace(), dataset, deck);
    (void)single.trainer().run();
    for (const Placement placement :
         {Placement::replicated, Placement::pipeline, Placement::sharded}) {
      SmallRun other(ExecutionSpace(), dataset, placed(deck, placement));
      (void)other.trainer().run();
      expect_same(snapshot(other.trainer()), snapshot(single.trainer()));
    }
    deck.kernels = {.block = vector_block};
    deck.vendor = {};
    SmallRun exact(ExecutionSpace(), dataset, deck);
    (void)exact.trainer().run();
    const Snapshot full = snapshot(exact.trainer());
    const double bar = GetParam() == DataType::full
                           ? 1e-4
                           : 1.5 * distance(snapshot(own.trainer()), full);  // by rounding to bf16
    EXPECT_LE(distance(snapshot(single.trainer()), full), bar);
  }
  /// Of all parameters, as vectors.
  static double distance(const Snapshot& found, const Snapshot& expected) {
    double difference = 0;
    double size = 0;
    for (std::size_t k = 0; k < expected.parameters.size(); ++k) {
      const std::vector<real>& numbers = expected.parameters[k].values;
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        difference += std::pow(double{found.parameters[k].values[i]} - double{numbers[i]}, 2);
        size += std::pow(double{numbers[i]}, 2);
      }
    }
    return std::sqrt(difference / size);
  }
};

TEST_P(VendorNetworks, OfResidualBlocks) {
  SmallDeck deck;
  deck.model = {.name = "resnet", .depth = 8, .stem = Stem::cifar};
  train(deck);
}

TEST_P(VendorNetworks, OfTransformers) {
  SmallDeck deck;
  deck.model = {.name = "vit", .depth = 2, .patch = 4, .width = 32, .heads = 2};
  deck.model.dropout = 0.1;
  train(deck);
}

INSTANTIATE_TEST_SUITE_P(Types, VendorNetworks,
                         ::testing::Values(DataType::full, DataType::bfloat16));

}  // namespace
}  // namespace carousel::test
