// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A small network of images that is put together as large ones are, for tests of how its layers
// work together. That each kind of layer is right by itself, every_op_test shows.

#include "core/model/builder.hpp"

namespace carousel::test {

/// Two residual blocks, one with a convolution in its shortcut. All sizes are odd ones.
[[nodiscard]] inline Model residual_blocks() {
  constexpr int classes = 5;
  ModelBuilder builder("residual blocks", {2, 11, 9}, classes);
  const auto convolution = [&](const char* name, int channels, int kernel, int stride,
                               bool bias = false) {
    builder.add("convolution", name,
                {{"channels", 1.0 * channels},
                 {"kernel", 1.0 * kernel},
                 {"stride", 1.0 * stride},
                 {"padding", 1.0 * (kernel / 2)},
                 {"bias", bias ? 1.0 : 0.0}});
  };
  convolution("conv1", 6, 3, 1, true);
  builder.add("batch_norm", "bn1");
  builder.add("relu", "relu");
  builder.add("max_pool", "maxpool", {{"kernel", 3}, {"stride", 2}, {"padding", 1}});
  const int pooled = builder.last();
  convolution("downsample.0", 7, 1, 2);
  builder.add("batch_norm", "downsample.1");
  const int shortcut = builder.last();
  builder.from(pooled);
  convolution("conv2", 7, 3, 2);
  builder.add("batch_norm", "bn2");
  builder.add_joining("add", "add1", shortcut);
  builder.add("relu", "relu");
  const int block = builder.last();
  convolution("conv3", 7, 3, 1);
  builder.add("batch_norm", "bn3");
  builder.add_joining("add", "add2", block);
  builder.add("relu", "relu");
  builder.add("average_pool", "avgpool");
  builder.add("flatten");
  builder.add("linear", "fc", {{"features", 1.0 * classes}});
  builder.add_loss({.arguments = {{"label_smoothing", 0.1}}});
  return builder.model();
}

}  // namespace carousel::test
