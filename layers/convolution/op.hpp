// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a convolution was told and what was chosen for it, and where a library's kernels lay what
// they work with.

#include "core/model/layer_spec.hpp"

namespace carousel::op {

struct Convolution {
  Window window;
  bool normalises = false;  // batch norm and ReLU of its input, which are never kept
  double epsilon = 1e-5;    // of that batch norm
  bool winograd = false;    // sums by Winograd's F(4x4, 3x3)
  int groups = 1;
};

}  // namespace carousel::op

namespace carousel {

/// Where a convolution of n samples by a graph lays what it works with, behind what is the
/// library's.
struct ConvolutionMemory {
  int channels;          // of what is convolved: pixels of photographs are filled up to vectors
  std::int64_t library;  // bytes; in fp32 it may bring all tensors into an order of its own
  std::int64_t sums;     // of the batch norm in front of it
  std::int64_t weights;  // in the library's order, or their gradient
  std::int64_t images;   // as they are convolved, or their gradient
  std::int64_t end;
};
[[nodiscard]] ConvolutionMemory convolution_memory(const LayerSpec& layer, int n);

}  // namespace carousel
