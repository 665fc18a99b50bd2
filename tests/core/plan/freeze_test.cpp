// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Frozen parameters: which patterns freeze what, and what plans are spared by it.

#include "core/model/freeze.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/check.hpp"
#include "core/model/builder.hpp"
#include "core/model/kernels.hpp"
#include "core/plan/partition.hpp"
#include "core/plan/stage_memory.hpp"

namespace carousel {
namespace {

using ::testing::HasSubstr;

Model resnet() {
  return build_resnet(8, Stem::cifar, {3, 8, 8}, 10);
}
Model frozen(const std::vector<std::string>& patterns) {
  Model model = resnet();
  freeze(model, patterns);
  return model;
}
const std::vector<std::string> encoder = {"conv1.*", "bn1.*", "layer1.*", "layer2.*"};

const LayerSpec& layer_of(const Model& model, const std::string& name) {
  return *std::ranges::find(model.layers, name, &LayerSpec::name);
}

std::string refusal_of(const std::vector<std::string>& patterns) {
  try {
    static_cast<void>(frozen(patterns));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(Freeze, MarksWhatPatternsMatch) {
  const Model model = frozen({"layer1.*", "fc.*"});
  std::int64_t size = 0;
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      EXPECT_EQ(parameter.frozen,
                parameter.name.starts_with("layer1.") || parameter.name.starts_with("fc."))
          << parameter.name;
      size += parameter.frozen ? 0 : parameter.size();
    }
    for (const ParameterSpec& buffer : layer.buffers) EXPECT_FALSE(buffer.frozen);
  }
  EXPECT_EQ(model.learned_size(), size);
  EXPECT_LT(size, model.parameter_size());
  EXPECT_EQ(frozen({}).learned_size(), model.parameter_size());
  EXPECT_THAT(model.told_frozen(), HasSubstr(" of them frozen"));
}

TEST(Freeze, RefusesWhatItCannotMean) {
  EXPECT_EQ(refusal_of({"layer1.*"}), "");
  EXPECT_THAT(refusal_of({"layer1.*", "encoder.*"}), HasSubstr("'encoder.*' matches no parameter"));
  EXPECT_THAT(refusal_of({"*.weight"}), HasSubstr("bn1.weight matches and bn1.bias does not"));
  EXPECT_THAT(refusal_of({"*"}), HasSubstr("nothing of resnet8 would learn"));
}

TEST(Freeze, TakesFromTheCostsOfBackward) {
  const Model all = resnet();
  const Model model = frozen({"conv1.*", "bn1.*", "layer2.0.conv1.*"});
  // Nothing learns before: no backward. The first layer that learns needs no gradient of its input.
  EXPECT_EQ(layer_of(model, "conv1").backward_flops, 0);
  EXPECT_EQ(layer_of(model, "bn1").backward_flops, 0);
  EXPECT_EQ(layer_of(model, "layer1.0.conv1").backward_flops,
            layer_of(all, "layer1.0.conv1").backward_flops / 2);
  // One of two products where something learns before.
  EXPECT_EQ(layer_of(model, "layer2.0.conv1").backward_flops,
            layer_of(all, "layer2.0.conv1").backward_flops / 2);
  EXPECT_EQ(layer_of(model, "layer2.0.conv2").backward_flops,
            layer_of(all, "layer2.0.conv2").backward_flops);
}

TEST(Freeze, FusesNoLayerThatIsFrozenWithOneThatLearns) {
  const auto fused = [](const std::vector<std::string>& patterns) {
    return choose_kernels(frozen(patterns), {.block = 16});
  };
  const auto is_mixed = [](const LayerSpec& layer) {
    return std::ranges::any_of(layer.parameters, [&](const ParameterSpec& parameter) {
      return parameter.frozen != layer.is_frozen();
    });
  };
  for (const auto& patterns :
       {std::vector<std::string>{"layer1.0.bn1.*"}, {"layer1.0.conv2.*"}, {"layer1.*"}, encoder}) {
    const Model model = fused(patterns);
    EXPECT_TRUE(std::ranges::none_of(model.layers, is_mixed)) << patterns.front();
    EXPECT_EQ(model.learned_size(), frozen(patterns).learned_size());
  }
}

// What learns would else be added in the place of what does not, whose gradient nobody wants.
TEST(Freeze, LearnsNothingInThePlaceOfWhatDoesNot) {
  ModelBuilder net("net", {1, 8, 8}, 10);
  net.add("convolution", "c", {{"channels", 1}, {"kernel", 3}, {"padding", 1}});
  net.from(-1).add("gelu", "g");
  net.add_joining("add", "sum", 0);
  net.add("flatten");
  net.add("linear", "head", {{"features", 10}});
  net.add_loss({});
  Model model = net.model();
  EXPECT_TRUE(layer_of(model, "sum").in_place);
  EXPECT_FALSE(layer_of(choose_kernels(model, {}), "sum").in_place);
  freeze(model, {"c.*"});
  const Model chosen = choose_kernels(model, {});
  EXPECT_TRUE(layer_of(chosen, "sum").in_place);  // now neither learns
  EXPECT_NO_THROW(
      static_cast<void>(plan_stages(chosen, partition_model(chosen, 1, Balance::layers), 4)));
}

TEST(Freeze, SparesMemoryAndMessages) {
  const auto plan = [](const std::vector<std::string>& patterns, int stages) {
    const Model model = choose_kernels(frozen(patterns), {.block = 16});
    return plan_stages(model, partition_model(model, stages, Balance::layers), 4);
  };
  for (const int stages : {1, 2, 3}) {
    const std::vector<StageMemory> all = plan({}, stages);
    const std::vector<StageMemory> some = plan(encoder, stages);
    std::int64_t learned = 0;
    std::int64_t frozen_bytes = 0;
    std::int64_t frames = 0;
    std::int64_t all_frames = 0;
    for (std::size_t j = 0; j < some.size(); ++j) {
      EXPECT_EQ(all[j].frozen_bytes, 0);
      EXPECT_LE(some[j].message_size, all[j].message_size);
      EXPECT_EQ(some[j].buffer_size, all[j].buffer_size);
      learned += some[j].parameter_size;
      frozen_bytes += some[j].frozen_bytes;
      frames += some[j].frame_bytes;
      all_frames += all[j].frame_bytes;
    }
    const Model model = frozen(encoder);
    EXPECT_EQ(learned, model.learned_size());
    EXPECT_EQ(frozen_bytes, (model.parameter_size() - learned) * std::int64_t{sizeof(real)});
    // What nothing learns before need not be kept for backward.
    EXPECT_LT(frames, all_frames);
  }
  // No gradient crosses a cut before which nothing learns.
  const std::vector<StageMemory> cut = plan({"conv1.*", "bn1.*", "layer1.*"}, 4);
  EXPECT_GT(plan({}, 4)[0].output_bytes, 0);
  EXPECT_EQ(cut[0].output_bytes, 0);
}

}  // namespace
}  // namespace carousel
