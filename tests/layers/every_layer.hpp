// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A small network in which every kind of layer has its place, for tests that must see them all. It
// is of no use for anything else.

#include "core/model/builder.hpp"

namespace carousel::test {

/// Two residual blocks, one with a convolution in its shortcut. All sizes are odd ones.
[[nodiscard]] inline Model every_layer() {
  constexpr int classes = 5;
  ModelBuilder builder("every layer", {2, 11, 9}, classes);
  builder.convolution("conv1", 6, {3, 1, 1});
  builder.batch_norm("bn1");
  builder.relu("relu");
  builder.max_pool("maxpool", {3, 2, 1});
  const int pooled = builder.last();
  builder.convolution("downsample.0", 7, {1, 2, 0});
  builder.batch_norm("downsample.1");
  const int shortcut = builder.last();
  builder.from(pooled).convolution("conv2", 7, {3, 2, 1});
  builder.batch_norm("bn2");
  builder.add("add1", shortcut);
  builder.relu("relu");
  const int block = builder.last();
  builder.convolution("conv3", 7, {3, 1, 1});
  builder.batch_norm("bn3");
  builder.add("add2", block);
  builder.relu("relu");
  builder.global_average_pool("avgpool");
  builder.flatten();
  builder.linear("fc", classes, lecun_uniform(7), lecun_uniform(7));
  builder.softmax_cross_entropy();

  Model model = builder.model();
  model.layers.front().parameters.push_back({"conv1.bias", {6}});
  model.layers.back().kind = kind::SoftmaxCrossEntropy{0.1};
  return model;
}

}  // namespace carousel::test
