// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// torch.nn.ReLU, backward needs the output alone, so that it may work in place.

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  infer_by_number(layer, 1, 1);
  layer.saves_output = layer.reads_signs = true;
  layer.output_recomputable = true;
  layer.in_place = true;
}

}  // namespace

Op relu() {
  return {.name = "relu", .infer = infer, .fit = fit_in_any_order};
}

}  // namespace carousel::ops
