// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/dropout_op.hpp"

namespace carousel::ops {

/// torchvision.ops.StochasticDepth in its mode "row"
Op stochastic_depth() {
  return dropping<true>("stochastic_depth");
}

}  // namespace carousel::ops
