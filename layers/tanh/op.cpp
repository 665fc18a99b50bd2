// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// torch.nn.Tanh, the hyperbolic tangent.

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  // The exponential function is about ten operations.
  infer_from_input(layer, 14, 15);
}

}  // namespace

Op tanh() {
  return {.name = "tanh", .infer = infer, .fit = fit_in_any_order};
}

}  // namespace carousel::ops
