// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What an attention was told, and what a library's kernels work with.

#include "core/model/layer_spec.hpp"

namespace carousel::op {

struct Attention {  // of queries, keys and values, one behind the other in the input's channels
  int heads = 1;
  bool causal = false;  // a token reads none behind it
};

}  // namespace carousel::op

namespace carousel {

/// Bytes of a sample's queries, keys and values, or of their gradients.
[[nodiscard]] std::int64_t attention_gradient_bytes(const LayerSpec& layer);

}  // namespace carousel
