// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a max pooling was told, and whether others were fused with it.

#include "core/model/layer_spec.hpp"

namespace carousel::op {

/// Of a window whose places fill a byte.
inline constexpr int most_indexed_taps = 127;

struct MaxPool {
  Window window;
  bool normalises = false;  // batch norm and ReLU of its input, which are never kept
  double epsilon = 1e-5;    // of that batch norm
};

}  // namespace carousel::op
