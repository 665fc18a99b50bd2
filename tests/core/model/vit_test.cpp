// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Vision transformers against torchvision's names, order, shapes, sizes and first values, and
// against the memory and the cuts that their layers must allow.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/check.hpp"
#include "core/model/builder.hpp"
#include "core/model/kernels.hpp"
#include "core/plan/partition.hpp"
#include "core/plan/stage_memory.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using ::testing::HasSubstr;

constexpr SampleShape imagenet = {3, 224, 224};

ModelConfig config_of(int patch, int width, int depth, int heads) {
  return {.name = "vit", .depth = depth, .patch = patch, .width = width, .heads = heads};
}

std::vector<ParameterSpec> parameters_of(const Model& model) {
  std::vector<ParameterSpec> all;
  for (const LayerSpec& layer : model.layers)
    all.insert(all.end(), layer.parameters.begin(), layer.parameters.end());
  return all;
}

Initial initial_of(const Model& model, const std::string& name) {
  for (const ParameterSpec& parameter : parameters_of(model))
    if (parameter.name == name) return parameter.initial;
  fail(ExitCode::internal, "no parameter {}", name);
}

TEST(Vit, HasTheNamesShapesAndOrderOfTorchvision) {
  std::ifstream file(CAROUSEL_TORCHVISION_NAMES);
  const auto networks = nlohmann::ordered_json::parse(file);
  const std::vector<std::pair<std::string, ModelConfig>> known = {
      {"vit_b_16", config_of(16, 768, 12, 12)},
      {"vit_b_32", config_of(32, 768, 12, 12)},
      {"vit_l_16", config_of(16, 1024, 24, 16)}};
  for (const auto& [name, config] : known) {
    nlohmann::ordered_json tensors;
    for (const ParameterSpec& parameter : parameters_of(build_model(config, imagenet, 1000)))
      tensors[parameter.name] = parameter.shape;
    EXPECT_EQ(tensors, networks.at(name)) << name;
  }
}

TEST(Vit, CostsWhatIsKnown) {
  const Model model = build_model(config_of(16, 768, 12, 12), imagenet, 1000);
  EXPECT_EQ(model.parameter_size(), 86'567'656);
  double flops = 0;
  for (const LayerSpec& layer : model.layers) flops += layer.forward_flops + layer.backward_flops;
  EXPECT_NEAR(flops / 105e9, 1, 0.02);
}

// torch.nn.MultiheadAttention starts its first layer by Glorot and its second as any linear layer,
// both without bias; the rest is in torchvision's constructors.
TEST(Vit, StartsAsTorchvisionDoes) {
  const Model model = build_model(config_of(16, 768, 12, 12), imagenet, 1000);
  const std::string block = "encoder.layers.encoder_layer_3.";
  EXPECT_EQ(initial_of(model, "class_token"), zeros());
  EXPECT_EQ(initial_of(model, "conv_proj.weight"), normal(std::sqrt(1.0 / (3 * 16 * 16))));
  EXPECT_EQ(initial_of(model, "encoder.pos_embedding"), normal(0.02));
  EXPECT_EQ(initial_of(model, block + "ln_1.weight"), ones());
  EXPECT_EQ(initial_of(model, block + "self_attention.in_proj_weight"),
            xavier_uniform(768, 3 * 768));
  EXPECT_EQ(initial_of(model, block + "self_attention.in_proj_bias"), zeros());
  EXPECT_EQ(initial_of(model, block + "self_attention.out_proj.weight"), lecun_uniform(768));
  EXPECT_EQ(initial_of(model, block + "self_attention.out_proj.bias"), zeros());
  EXPECT_EQ(initial_of(model, block + "mlp.0.weight"), xavier_uniform(768, 3072));
  EXPECT_EQ(initial_of(model, block + "mlp.3.bias"), normal(1e-6));
  EXPECT_EQ(initial_of(model, "heads.head.weight"), zeros());
}

// Of a block: what its norms read, queries, keys and values, what attention leaves, and the hidden
// features before GELU; ten times the tokens, and two numbers of each norm and token.
TEST(Vit, SavesNoNormAndNoGelu) {
  const auto saved = [](Recompute recompute) {
    const KernelChoice choice = {.block = 16, .recompute = recompute};
    const auto each = saved_per_sample(
        choose_kernels(build_model(config_of(16, 768, 12, 12), imagenet, 1000), choice));
    return std::accumulate(each.begin(), each.end(), std::int64_t{0});
  };
  const std::int64_t tokens = std::int64_t{197} * 768;
  const std::int64_t statistics = 24 * 2 * 197 + 2;  // the last norm has one token
  const std::int64_t numbers = 12 * 10 * tokens + statistics + 768 + 1000;
  EXPECT_EQ(saved(Recompute::cheap), std::int64_t{sizeof(real)} * numbers);
  EXPECT_LE(4 * numbers, 78'000'000);
  EXPECT_EQ(saved(Recompute::none), std::int64_t{sizeof(real)} * (numbers + 12 * 6 * tokens + 768));
}

// One stage for every piece: in front of each block, of its second half, and inside of both.
TEST(Vit, IsCutBetweenAndInsideBlocks) {
  const Model model = build_model(config_of(4, 48, 2, 3), {3, 32, 32}, 10);
  const Partition partition = partition_model(model, most_stages(model), Balance::layers);
  const auto begins = [&](const std::string& name) {
    return std::ranges::any_of(partition.first, [&](int l) {
      return l < std::ssize(model.layers) && model.layers[l].name == name;
    });
  };
  for (const char* name : {"ln_1", "ln_2", "self_attention", "mlp.0", "mlp.3"})
    EXPECT_TRUE(begins(std::string("encoder.layers.encoder_layer_1.") + name)) << name;
  EXPECT_EQ(plan_stages(model, partition, 2).size(), partition.load.size());
}

TEST(Vit, RefusesWhatDoesNotFit) {
  const auto refusal = [](const ModelConfig& config, const SampleShape& image) -> std::string {
    try {
      static_cast<void>(build_model(config, image, 10));
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_THAT(refusal(config_of(4, 50, 2, 3), {3, 32, 32}),
              HasSubstr("model.width = 50 is not a multiple of model.heads = 3"));
  EXPECT_THAT(refusal(config_of(16, 48, 2, 3), {3, 40, 32}),
              HasSubstr("images of 3x40x32 are not made of whole patches; model.patch = 16"));
  ModelBuilder builder("patches", {3, 8, 8}, 10);
  builder.add("convolution", "conv", {{"channels", 8}, {"kernel", 1}});
  EXPECT_THAT(
      testing::failure(ExitCode::usage,
                       [&] {
                         builder.add("patch_embedding", "patches", {{"features", 8}, {"patch", 4}});
                       }),
      HasSubstr("patch_embedding patches: it is for images"));
}

}  // namespace
}  // namespace carousel
