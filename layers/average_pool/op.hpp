// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What an average pooling was told.

#include "core/model/layer_spec.hpp"

namespace carousel::op {

struct AveragePool {
  Window window;  // kernel 0: the whole image
};

}  // namespace carousel::op
