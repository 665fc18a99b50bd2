// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Residual networks against torchvision's names, shapes and sizes and known costs; every one of
// them can be cut, also inside blocks, and planned.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/check.hpp"
#include "core/base/real.hpp"
#include "core/model/builder.hpp"
#include "core/model/model.hpp"
#include "core/plan/memory_plan.hpp"
#include "core/plan/partition.hpp"
#include "core/plan/stage_memory.hpp"
#include "core/proof/checker.hpp"
#include "layers/convolution/op.hpp"
#include "layers/group_norm/op.hpp"
#include "layers/max_pool/op.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using ::testing::HasSubstr;
using Shapes = std::map<std::string, std::vector<std::int64_t>>;

constexpr SampleShape cifar = {3, 32, 32};
constexpr SampleShape imagenet = {3, 224, 224};

Shapes shapes_of(const Model& model) {
  Shapes shapes;
  for (const LayerSpec& layer : model.layers) {
    for (const auto* tensors : {&layer.parameters, &layer.buffers})
      for (const ParameterSpec& tensor : *tensors)
        EXPECT_TRUE(shapes.emplace(tensor.name, tensor.shape).second) << tensor.name;
  }
  return shapes;
}

/// Floating-point operations of a training step for one image.
double flops(const Model& model) {
  double sum = 0;
  for (const LayerSpec& layer : model.layers) sum += layer.forward_flops + layer.backward_flops;
  return sum;
}

const LayerSpec& layer_of(const Model& model, std::string_view kind, const std::string& name) {
  for (const LayerSpec& layer : model.layers)
    if (layer.is(kind) && layer.name == name) return layer;
  fail(ExitCode::internal, "no layer {}", name);
}

std::vector<Model> all_models() {
  std::vector<Model> models;
  for (const int depth : {8, 20, 32, 56})
    models.push_back(build_resnet(depth, Stem::cifar, cifar, 10));
  for (const int depth : {18, 34, 50}) {
    models.push_back(build_resnet(depth, Stem::cifar, cifar, 10));
    models.push_back(build_resnet(depth, Stem::imagenet, imagenet, 1000));
  }
  models.push_back(build_resnet(18, Stem::cifar, cifar, 10, 32));
  return models;
}

TEST(Resnet, HasTheNamesAndShapesOfTorchvision) {
  std::ifstream file(CAROUSEL_TORCHVISION_NAMES);
  const auto networks = nlohmann::json::parse(file).get<std::map<std::string, Shapes>>();
  int compared = 0;
  for (const auto& [name, expected] : networks) {
    if (!name.starts_with("resnet")) continue;
    ++compared;
    const int depth = std::stoi(name.substr(std::string("resnet").size()));
    const bool is_cifar = name.ends_with("cifar");
    const Model model = is_cifar ? build_resnet(depth, Stem::cifar, cifar, 10)
                                 : build_resnet(depth, Stem::imagenet, imagenet, 1000);
    EXPECT_EQ(shapes_of(model), expected) << name;
  }
  EXPECT_EQ(compared, 6);
}

// As resnet18(norm_layer=lambda channels: GroupNorm(32, channels)) names and starts them: a weight
// and a bias in the place of each batch norm, and no statistics.
TEST(Resnet, HasGroupNormsInTheirPlace) {
  for (const int depth : {18, 50}) {
    Shapes expected = shapes_of(build_resnet(depth, Stem::imagenet, imagenet, 1000));
    std::erase_if(expected, [](const auto& tensor) {
      return tensor.first.find(".running_") != std::string::npos;
    });
    const Model model = build_resnet(depth, Stem::imagenet, imagenet, 1000, 32);
    EXPECT_EQ(shapes_of(model), expected);
    EXPECT_EQ(model.buffer_size(), 0);
    for (const LayerSpec& layer : model.layers) {
      EXPECT_FALSE(layer.is("batch_norm") || layer.normalises_samples);
      if (!layer.is("group_norm")) continue;
      EXPECT_EQ(layer.as<op::GroupNorm>().groups, 32);
      EXPECT_EQ(layer.as<op::GroupNorm>().epsilon, 1e-5);
      EXPECT_EQ(layer.parameters[0].initial, ones());
      EXPECT_EQ(layer.parameters[1].initial, zeros());
    }
  }
  const ModelConfig config = {
      .name = "resnet", .depth = 18, .stem = Stem::cifar, .norm = Norm::group, .groups = 8};
  EXPECT_EQ(layer_of(build_model(config, cifar, 10), "group_norm", "layer4.1.bn2")
                .as<op::GroupNorm>()
                .groups,
            8);
}

TEST(Resnet, HasTheSizeOfTorchvision) {
  EXPECT_EQ(build_resnet(18, Stem::imagenet, imagenet, 1000).parameter_size(), 11'689'512);
  EXPECT_EQ(build_resnet(34, Stem::imagenet, imagenet, 1000).parameter_size(), 21'797'672);
  EXPECT_EQ(build_resnet(50, Stem::imagenet, imagenet, 1000).parameter_size(), 25'557'032);
  EXPECT_EQ(build_resnet(18, Stem::cifar, cifar, 10).parameter_size(), 11'173'962);
  EXPECT_EQ(build_resnet(20, Stem::cifar, cifar, 10).parameter_size(), 272'474);
}

// Multiplications and additions of the convolutions alone, three times the forward pass but for the
// gradient of the images. The rest of the layers is below one per cent.
TEST(Resnet, CostsWhatIsKnown) {
  EXPECT_NEAR(flops(build_resnet(18, Stem::cifar, cifar, 10)) / 3.33e9, 1, 0.01);
  EXPECT_NEAR(flops(build_resnet(50, Stem::imagenet, imagenet, 1000)) / 24.3e9, 1, 0.01);
  const Model model = build_resnet(20, Stem::cifar, cifar, 10);
  const LayerSpec& first = layer_of(model, "convolution", "conv1");
  EXPECT_EQ(first.backward_flops, first.forward_flops);
  const LayerSpec& second = layer_of(model, "convolution", "layer1.0.conv1");
  EXPECT_EQ(second.backward_flops, 2 * second.forward_flops);
}

TEST(Resnet, BottlenecksHaveTheirStrideOnTheLargeConvolution) {
  const Model model = build_resnet(50, Stem::imagenet, imagenet, 1000);
  const auto window = [&](const char* name) {
    return layer_of(model, "convolution", name).as<op::Convolution>().window;
  };
  EXPECT_EQ(window("conv1"), (Window{7, 2, 3}));
  EXPECT_EQ(window("layer2.0.conv1"), (Window{1, 1, 0}));
  EXPECT_EQ(window("layer2.0.conv2"), (Window{3, 2, 1}));
  EXPECT_EQ(window("layer2.0.conv3"), (Window{1, 1, 0}));
  EXPECT_EQ(window("layer2.0.downsample.0"), (Window{1, 2, 0}));
  EXPECT_EQ(window("layer1.0.downsample.0"), (Window{1, 1, 0}));
  EXPECT_EQ(layer_of(model, "max_pool", "maxpool").as<op::MaxPool>().window, (Window{3, 2, 1}));
  EXPECT_EQ(layer_of(model, "average_pool", "avgpool").input(), (SampleShape{2048, 7, 7}));
}

TEST(Resnet, StartsAsTorchvisionDoes) {
  const Model model = build_resnet(18, Stem::imagenet, imagenet, 1000);
  const ParameterSpec& weight = layer_of(model, "convolution", "layer2.0.conv1").parameters.front();
  EXPECT_EQ(weight.initial, kaiming_normal(128 * 3 * 3));
  const LayerSpec& norm = layer_of(model, "batch_norm", "bn1");
  EXPECT_EQ(norm.parameters[0].initial, ones());
  EXPECT_EQ(norm.parameters[1].initial, zeros());
  EXPECT_EQ(norm.buffers[0].initial, zeros());
  EXPECT_EQ(norm.buffers[1].initial, ones());
  EXPECT_FALSE(norm.buffers[0].learned || norm.buffers[1].learned);
  for (const ParameterSpec& parameter : layer_of(model, "linear", "fc").parameters)
    EXPECT_EQ(parameter.initial, lecun_uniform(512));
}

TEST(Resnet, AddsTheShortcutToTheBranchBeforeIt) {
  for (const Model& model : all_models()) {
    int additions = 0;
    for (int l = 0; l < static_cast<int>(model.layers.size()); ++l) {
      const LayerSpec& layer = model.layers[l];
      if (!layer.is("add")) continue;
      ++additions;
      ASSERT_EQ(layer.inputs.size(), 2U);
      EXPECT_EQ(layer.inputs[0].layer, l - 1);
      const LayerSpec& shortcut = model.layers[layer.inputs[1].layer];
      EXPECT_EQ(shortcut.output, layer.input());
      EXPECT_TRUE(shortcut.name.ends_with("downsample.1") || shortcut.is("relu") ||
                  shortcut.is("max_pool"))
          << shortcut.label();
    }
    EXPECT_GE(additions, 3) << model.name;
  }
}

/// Whether stage j ends between the beginning of a block and its addition.
bool cuts_a_block(const Model& model, const Partition& partition) {
  for (int l = 0; l < static_cast<int>(model.layers.size()); ++l) {
    if (!model.layers[l].is("add")) continue;
    for (int j = 1; j < partition.stages(); ++j)
      if (partition.first[j] > model.layers[l].inputs[1].layer + 1 && partition.first[j] <= l)
        return true;
  }
  return false;
}

TEST(Resnet, CanBeCutAndPlanned) {
  int inside = 0;
  for (const Model& model : all_models()) {
    for (const int stages : {1, 2, 3, 4, 8}) {
      for (const Balance balance : {Balance::flops, Balance::activations, Balance::parameters}) {
        SCOPED_TRACE(fmt::format("{}, S = {}, {}", model.name, stages, to_string(balance)));
        const Partition partition = partition_model(model, stages, balance);
        inside += cuts_a_block(model, partition) ? 1 : 0;
        const std::vector<StageMemory> memory = plan_stages(model, partition, 2);
        for (const Placement placement : {Placement::single, Placement::pipeline})
          check_schedule(Schedule(schedule_spec({.rule = RuleKind::cdp_v2,
                                                 .placement = placement,
                                                 .micro_batches = stages,
                                                 .stages = stages},
                                                memory)));
      }
    }
  }
  EXPECT_GT(inside, 20);
}

TEST(Resnet, CutsFinely) {
  // A stage may begin with every layer that does not work in place.
  const Model model = build_resnet(8, Stem::cifar, cifar, 10);
  const int pieces = static_cast<int>(
      std::ranges::count_if(model.layers, [](const LayerSpec& layer) { return !layer.in_place; }));
  const Partition partition = partition_model(model, pieces, Balance::flops);
  EXPECT_EQ(plan_stages(model, partition, 2).size(), static_cast<std::size_t>(pieces));
}

TEST(Resnet, RefusesWhatItIsNot) {
  const auto refusal = [](int depth, Stem stem) {
    return testing::failure(ExitCode::usage, [&] { check_resnet(depth, stem); });
  };
  EXPECT_THAT(refusal(19, Stem::cifar), HasSubstr("model.depth = 19"));
  EXPECT_THAT(refusal(20, Stem::imagenet), HasSubstr("model.stem = \"imagenet\""));
  EXPECT_THAT(testing::failure(ExitCode::usage, [] { check_model({.name = "vgg"}); }),
              HasSubstr("known: mlp, resnet, vit"));
  ModelConfig config = {
      .name = "resnet", .depth = 20, .stem = Stem::cifar, .norm = Norm::group, .groups = 32};
  EXPECT_THAT(testing::failure(ExitCode::usage, [&] { check_model(config); }),
              HasSubstr("model.groups = 32 does not divide the 16 channels"));
  config.norm = Norm::batch;  // which has none
  EXPECT_NO_THROW(check_model(config));
}

TEST(Resnet, RefusesImagesThatAreTooSmall) {
  ModelBuilder builder("small", {3, 4, 9}, 10);
  builder.add("convolution", "conv1", {{"channels", 8}, {"kernel", 3}, {"stride", 2}});  // 8x1x4
  const std::string message = testing::failure(ExitCode::usage, [&] {
    builder.add("max_pool", "pool", {{"kernel", 3}, {"stride", 2}});
  });
  EXPECT_THAT(message, HasSubstr("images of 3x4x9 are too small for small: max_pool pool"));
  // Padding keeps one pixel in every layer of a residual network.
  EXPECT_EQ(build_resnet(18, Stem::imagenet, {3, 1, 1}, 10).layers.back().output.channels, 10);
}

}  // namespace
}  // namespace carousel
