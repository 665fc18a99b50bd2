// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a transposed convolution was told.

#include "core/model/layer_spec.hpp"

namespace carousel::op {

struct TransposedConvolution {
  Window window;
  int groups = 1;
};

}  // namespace carousel::op
