// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Which layers of residual networks become one, how their activations lie, and how many bytes
// backward finds of them. What the kernels compute is tested with the layers.

#include "core/model/kernels.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "core/model/builder.hpp"

namespace carousel {
namespace {

constexpr int block = 16;
const SampleShape cifar = {3, 32, 32};
const SampleShape photograph = {3, 224, 224};

std::vector<std::string> names(const Model& model, std::vector<ParameterSpec> LayerSpec::*tensors) {
  std::vector<std::string> all;
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& tensor : layer.*tensors) all.push_back(tensor.name);
  }
  return all;
}

double saved_megabytes(const Model& model, Recompute recompute) {
  const auto saved = saved_per_sample(choose_kernels(model, {block, true, recompute}));
  const auto bytes = std::accumulate(saved.begin(), saved.end(), std::int64_t{0});
  return 1e-6 * static_cast<double>(bytes) * (4.0 / sizeof(real));
}

const LayerSpec& layer_of(const Model& model, const std::string& parameter) {
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& tensor : layer.parameters) {
      if (tensor.name == parameter) return layer;
    }
  }
  ADD_FAILURE() << parameter;
  return model.layers.front();
}

TEST(Kernels, ChangeNoParameter) {
  for (const Model& model : {build_resnet(20, Stem::cifar, cifar, 10),
                             build_resnet(50, Stem::imagenet, photograph, 1000)}) {
    for (const Recompute recompute : {Recompute::none, Recompute::cheap, Recompute::stage}) {
      const Model chosen = choose_kernels(model, {block, true, recompute});
      EXPECT_LT(chosen.layers.size(), model.layers.size());
      EXPECT_EQ(names(chosen, &LayerSpec::parameters), names(model, &LayerSpec::parameters));
      EXPECT_EQ(names(chosen, &LayerSpec::buffers), names(model, &LayerSpec::buffers));
      EXPECT_EQ(chosen.recomputes_stages, recompute == Recompute::stage);
      check_tensors(chosen);
    }
  }
}

// One layer that fits no blocks leaves the others theirs.
TEST(Kernels, ArePortableWhereFeaturesFillNoBlocks) {
  ModelConfig config = {.name = "vit", .depth = 1, .patch = 4, .width = 4 * block, .heads = 4};
  const Model even = choose_kernels(build_model(config, cifar, 10), {block});
  EXPECT_EQ(slow_kernels(even, VendorKernels::none, false), "");
  config.heads = 8;
  const Model odd = choose_kernels(build_model(config, cifar, 10), {block});
  EXPECT_EQ(slow_kernels(odd, VendorKernels::none, false),
            fmt::format("1 layer, beginning with attention ..._0.self_attention: {} features "
                        "per head, no multiple of {}",
                        block / 2, block));
  for (const LayerSpec& layer : odd.layers) {
    EXPECT_EQ(layer.converted == Converted::orders, layer.is("attention")) << layer.label();
    EXPECT_EQ(layer.output_format.block, layer.output.height > 1 ? block : 1) << layer.label();
  }
  check_tensors(odd);
}

// Also where as many come in, in plain order, as go out, or only they are odd.
TEST(Kernels, TellOddConvolutions) {
  ModelBuilder builder("odd", {3, 8, 8}, 10);
  for (const double channels : {16, 10, 10, 16, 16})
    builder.add("convolution", "conv", {{"channels", channels}, {"kernel", 3}, {"padding", 1}});
  const Model model = choose_kernels(builder.model(), {.block = block});
  std::vector<std::string> reasons;
  for (const LayerSpec& layer : model.layers) reasons.push_back(layer.slow_because);
  EXPECT_THAT(reasons, ::testing::ElementsAre("", "10 channels, no multiple of 16",
                                              "10 channels, no multiple of 16",
                                              "10 channels, no multiple of 16", ""));
}

TEST(Kernels, TellLayersOfEachLibrary) {
  const ModelConfig vit = {.name = "vit", .depth = 2, .patch = 4, .width = 64, .heads = 4};
  const auto by_vendor = [](const Model& model, VendorKernels kernels, DataType type) {
    return vendor_layers(
        choose_kernels(model, {.block = 1, .winograd = false, .type = type, .vendor = kernels}));
  };
  const Model tokens = build_model(vit, cifar, 10);
  const Model images = build_resnet(20, Stem::cifar, cifar, 10);
  const DataType bf16 = DataType::bfloat16;
  EXPECT_EQ(by_vendor(images, VendorKernels::none, bf16), "");
  EXPECT_EQ(by_vendor(images, VendorKernels::products, bf16), "1 by cuBLASLt");
  if constexpr (sizeof(real) == sizeof(float)) {
    EXPECT_EQ(by_vendor(images, VendorKernels::graphs, bf16), "21 by cuDNN, 1 by cuBLASLt");
    // Of a block queries, keys and values, what attention ends with, and two of the perceptron.
    EXPECT_EQ(by_vendor(tokens, VendorKernels::graphs, bf16), "2 by cuDNN, 10 by cuBLASLt");
    EXPECT_EQ(by_vendor(tokens, VendorKernels::graphs, DataType::full), "10 by cuBLASLt");
  }
}

TEST(Kernels, TellWhatGpusHaveSlowly) {
  const auto slow = [](const Model& model, VendorKernels kernels, DataType type,
                       bool on_gpu = true) {
    return slow_kernels(
        choose_kernels(model, {.block = 1, .winograd = false, .type = type, .vendor = kernels}),
        kernels, on_gpu);
  };
  const Model images = build_resnet(20, Stem::cifar, cifar, 10);
  const DataType bf16 = DataType::bfloat16;
  EXPECT_THAT(slow(images, VendorKernels::none, bf16),
              ::testing::StartsWith("21 convolutions, 1 linear layer by our own: "));
  EXPECT_EQ(slow(images, VendorKernels::none, bf16, false), "") << "hosts have fast ones";
  EXPECT_EQ(slow(images, VendorKernels::products, bf16),
            "21 convolutions by our own: this program was built without cuDNN");
  ModelConfig vit = {.name = "vit", .depth = 2, .patch = 4, .width = 64, .heads = 4};
  const Model tokens = build_model(vit, cifar, 10);
  if constexpr (sizeof(real) == sizeof(float)) {
    EXPECT_EQ(slow(images, VendorKernels::graphs, bf16), "");
    EXPECT_EQ(slow(tokens, VendorKernels::graphs, bf16), "");
    EXPECT_EQ(slow(tokens, VendorKernels::graphs, DataType::full),
              "2 attentions by our own: cuDNN has it in bf16 alone, see engine.precision");
  }
  vit.width = 60;
  EXPECT_THAT(slow(build_model(vit, cifar, 10), VendorKernels::graphs, bf16),
              ::testing::HasSubstr("no multiple of 8"));
}

TEST(Kernels, FuseNormsWithTheirNeighbours) {
  const Model model = choose_kernels(build_resnet(50, Stem::imagenet, photograph, 1000), {block});
  EXPECT_EQ(layer_of(model, "bn1.weight").label(), "norm+relu+max_pool maxpool");
  EXPECT_EQ(layer_of(model, "layer1.0.bn1.weight").label(), "norm+relu+winograd layer1.0.conv2");
  EXPECT_EQ(layer_of(model, "layer2.0.bn1.weight").label(), "norm+relu+convolution layer2.0.conv2");
  EXPECT_EQ(layer_of(model, "layer1.0.bn2.weight").label(), "norm+relu+convolution layer1.0.conv3");
  EXPECT_EQ(layer_of(model, "layer1.0.bn3.weight").label(), "batch_norm+add+relu layer1.0.bn3");
  EXPECT_EQ(layer_of(model, "layer1.0.downsample.1.weight").label(),
            "batch_norm layer1.0.downsample.1");
  EXPECT_EQ(layer_of(model, "conv1.weight").label(), "convolution conv1");
  const Model direct = choose_kernels(build_resnet(50, Stem::imagenet, photograph, 1000),
                                      {block, false, Recompute::none});
  EXPECT_EQ(layer_of(direct, "layer1.0.conv2.weight").label(), "convolution layer1.0.conv2");
  EXPECT_EQ(layer_of(direct, "layer1.0.bn1.weight").label(), "batch_norm+relu layer1.0.bn1");
}

// Images come as files have them, and the classifier reads plain features.
TEST(Kernels, KeepBlocksBetweenImagesAndClassifier) {
  const Model model = choose_kernels(build_resnet(18, Stem::cifar, cifar, 10), {block});
  bool behind_pool = false;
  for (const LayerSpec& layer : model.layers) {
    behind_pool = behind_pool || layer.is("average_pool");
    EXPECT_EQ(layer.output_format.block, behind_pool ? 1 : block) << layer.label();
  }
  EXPECT_TRUE(behind_pool);
}

TEST(Kernels, AreThePortableOnesWhereBlocksDoNotFit) {
  const Model resnet = build_resnet(20, Stem::cifar, cifar, 10);  // groups of 16, 32, 64 channels
  for (const int none : {1, 24}) {
    const Model same = choose_kernels(resnet, {none});
    ASSERT_EQ(same.layers.size(), resnet.layers.size());
    for (const LayerSpec& layer : same.layers) EXPECT_EQ(layer.kernels, Kernels::portable);
  }
  // The first group alone fills no blocks of 32.
  const Model partly = choose_kernels(resnet, {32});
  for (const LayerSpec& layer : partly.layers) {
    if (!layer.is("convolution") || layer.input().channels == 16 || layer.output.channels == 16)
      continue;
    EXPECT_EQ(layer.kernels, Kernels::blocked) << layer.label();
  }
  check_tensors(partly);
  const Model mlp = build_mlp({64, 32, 10}, {1, 8, 8}, 10);
  EXPECT_EQ(to_string(choose_kernels(mlp, {block})), to_string(mlp));
}

// PyTorch's hooks find 4.71 and 86.0 MB, with a mask for each ReLU besides.
TEST(Kernels, SaveLittle) {
  const Model resnet18 = build_resnet(18, Stem::cifar, cifar, 10);
  EXPECT_LE(saved_megabytes(resnet18, Recompute::cheap), 3.45);
  EXPECT_LE(saved_megabytes(resnet18, Recompute::none), 4.72);
  const Model resnet50 = build_resnet(50, Stem::imagenet, photograph, 1000);
  EXPECT_LE(saved_megabytes(resnet50, Recompute::cheap), 68);
  EXPECT_LE(saved_megabytes(resnet50, Recompute::none), 90);
}

}  // namespace
}  // namespace carousel
