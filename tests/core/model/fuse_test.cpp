// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Runs of layers become one, with all that a plan knows of them.

#include "core/model/fuse.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace carousel {
namespace {

template <class Kind>
bool is(const LayerSpec& layer) {
  return layer.is<Kind>();
}

void complete(std::span<const LayerSpec> run, LayerSpec& fused) {
  fused.kind = run.front().kind;
  fused.saved = run.front().saved;
  fused.saves_input = fused.saves_output = true;
}

/// Batch norm, addition and ReLU first, since of two that match the first one counts.
const std::vector<Fusion> norms = {
    {{is<kind::BatchNorm>, is<kind::Add>, is<kind::Relu>}, complete},
    {{is<kind::BatchNorm>, is<kind::Relu>}, complete},
};

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

TEST(Fuse, ChangesNothingWithoutKernels) {
  const Model model = small_resnet();
  const Model same = fuse(model, {});
  ASSERT_EQ(same.layers.size(), model.layers.size());
  EXPECT_EQ(to_string(same), to_string(model));
}

TEST(Fuse, KeepsParametersCostsAndShapes) {
  const Model model = small_resnet();
  const Model fused = fuse(model, norms);
  EXPECT_EQ(parameter_names(fused), parameter_names(model));
  EXPECT_EQ(flops(fused), flops(model));
  EXPECT_NO_THROW(check_tensors(fused));
  // The stem and three blocks: four of batch norm and ReLU, three with the addition between.
  EXPECT_EQ(fused.layers.size(), model.layers.size() - 4 - 2 * 3);
  EXPECT_TRUE(std::ranges::none_of(fused.layers, is<kind::Add>));
  EXPECT_TRUE(std::ranges::none_of(fused.layers, is<kind::Relu>));
}

TEST(Fuse, ReadsWhatTheRunReadFromOutside) {
  const Model fused = fuse(small_resnet(), norms);
  for (const LayerSpec& layer : fused.layers) {
    if (layer.inputs.size() < 2) continue;
    const LayerSpec& branch = fused.layers[layer.inputs[0].layer];
    EXPECT_TRUE(branch.is<kind::Convolution>()) << layer.label();
    EXPECT_EQ(branch.name.substr(0, 8), layer.name.substr(0, 8));
    EXPECT_NE(layer.inputs[1].layer, layer.inputs[0].layer);
  }
}

TEST(Fuse, LeavesARunWhoseTensorsOthersRead) {
  Model model = small_resnet();
  const auto norm = std::ranges::find_if(model.layers, is<kind::BatchNorm>);
  const auto index = static_cast<int>(norm - model.layers.begin());
  ASSERT_TRUE(model.layers[index + 1].is<kind::Relu>());
  // Somebody far behind reads what lies between the two.
  const auto add = std::ranges::find_if(model.layers, is<kind::Add>);
  add->inputs[1] = {index, norm->output};
  const Model fused = fuse(model, norms);
  EXPECT_EQ(std::ranges::count_if(fused.layers, is<kind::Relu>), 1);
}

}  // namespace
}  // namespace carousel
