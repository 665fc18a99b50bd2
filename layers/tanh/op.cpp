// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// torch.nn.Tanh, the hyperbolic tangent.

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  // The exponential function is about ten operations.
  infer_by_number(layer, 14, 15);
  // Not in place, though backward could read the output: an addition or a dropout behind it, which
  // are in place, would change what backward reads.
  layer.saves_input = true;
  layer.output_recomputable = true;
}

}  // namespace

Op tanh() {
  return {.name = "tanh", .infer = infer, .fit = fit_in_any_order};
}

}  // namespace carousel::ops
