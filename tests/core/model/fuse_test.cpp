// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Runs of layers become one, with all that a plan knows of them.

#include "core/model/kernels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace carousel {
namespace {

/// Kernels of blocks, without what backward would make again: norms are fused with what follows.
const KernelChoice norms = {.block = 16, .winograd = false, .recompute = Recompute::none};

bool is_add(const LayerSpec& layer) {
  return layer.is("add");
}
bool is_relu(const LayerSpec& layer) {
  return layer.is("relu");
}

Model small_resnet() {
  return build_resnet(8, Stem::cifar, {3, 8, 8}, 10);
}

std::vector<std::string> parameter_names(const Model& model) {
  std::vector<std::string> names;
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& parameter : layer.parameters) names.push_back(parameter.name);
    for (const ParameterSpec& buffer : layer.buffers) names.push_back(buffer.name);
  }
  return names;
}

double flops(const Model& model) {
  double sum = 0;
  for (const LayerSpec& layer : model.layers) sum += layer.forward_flops + layer.backward_flops;
  return sum;
}

TEST(Fusion, ChangesNothingWithoutKernels) {
  const Model model = small_resnet();
  const Model same = choose_kernels(model, {.block = 1, .recompute = Recompute::none});
  ASSERT_EQ(same.layers.size(), model.layers.size());
  EXPECT_EQ(to_string(same), to_string(model));
}

TEST(Fusion, KeepsParametersCostsAndShapes) {
  const Model model = small_resnet();
  const Model fused = choose_kernels(model, norms);
  EXPECT_EQ(parameter_names(fused), parameter_names(model));
  EXPECT_EQ(flops(fused), flops(model));
  EXPECT_NO_THROW(check_tensors(fused));
  // The stem and three blocks: four of batch norm and ReLU, three with the addition between.
  EXPECT_EQ(fused.layers.size(), model.layers.size() - 4 - 2 * 3);
  EXPECT_TRUE(std::ranges::none_of(fused.layers, is_add));
  EXPECT_TRUE(std::ranges::none_of(fused.layers, is_relu));
}

TEST(Fusion, ReadsWhatTheRunReadFromOutside) {
  const Model fused = choose_kernels(small_resnet(), norms);
  for (const LayerSpec& layer : fused.layers) {
    if (layer.inputs.size() < 2) continue;
    const LayerSpec& branch = fused.layers[layer.inputs[0].layer];
    EXPECT_TRUE(branch.is("convolution")) << layer.label();
    EXPECT_EQ(branch.name.substr(0, 8), layer.name.substr(0, 8));
    EXPECT_NE(layer.inputs[1].layer, layer.inputs[0].layer);
  }
}

TEST(Fusion, LeavesARunWhoseTensorsOthersRead) {
  Model model = small_resnet();
  const auto norm = std::ranges::find_if(
      model.layers, [](const LayerSpec& layer) { return layer.is("batch_norm"); });
  const auto index = static_cast<int>(norm - model.layers.begin());
  ASSERT_TRUE(model.layers[index + 1].is("relu"));
  // Somebody far behind reads what lies between the two.
  const auto add = std::ranges::find_if(model.layers, is_add);
  add->inputs[1] = {index, norm->output};
  const Model fused = choose_kernels(model, norms);
  EXPECT_EQ(std::ranges::count_if(fused.layers, is_relu), 1);
}

}  // namespace
}  // namespace carousel
