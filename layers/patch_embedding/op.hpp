// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a patch embedding was told, and where a library's kernels lay what they work with.

#include "core/model/layer_spec.hpp"

namespace carousel::op {

struct PatchEmbedding {
  Window window;  // patches, which fill the image
};

}  // namespace carousel::op

namespace carousel {

/// Where a patch embedding of n samples lays patches as rows, and what they are multiplied to.
struct PatchMemory {
  std::int64_t rows;
  std::int64_t products;
  std::int64_t end;
};
[[nodiscard]] PatchMemory patch_memory(const LayerSpec& layer, int n);

/// The convolution in a patch embedding.
[[nodiscard]] LayerSpec convolution_of_patches(const LayerSpec& layer);

}  // namespace carousel
