// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// A row that is learned for each place, added to the token there: torch.nn.Embedding of 0, 1, 2 ...
// as GPT-2 has it.

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  infer_by_number(layer, 1, 1);
  layer.in_place = true;
  layer.parameters = {
      {layer.name + ".weight", {layer.input().pixels(), layer.input().channels}, normal(0.02)}};
}

}  // namespace

Op position_embedding() {
  return {.name = "position_embedding", .infer = infer, .fit = fit_in_any_order};
}

}  // namespace carousel::ops
