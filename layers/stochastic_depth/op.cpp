// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/stochastic_depth/op.hpp"

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& /*around*/) {
  layer.attributes = op::StochasticDepth{arguments.number("probability")};
  infer_by_number(layer, 1, 1);
  layer.output_recomputable = true;
  layer.in_place = layer.scales = true;
}

}  // namespace

/// torchvision.ops.StochasticDepth in its mode "row"
Op stochastic_depth() {
  return {.name = "stochastic_depth",
          .arguments = {{.name = "probability", .least = 0, .most = 0.999, .whole = false}},
          .infer = infer,
          .fit = fit_in_any_order};
}

}  // namespace carousel::ops
