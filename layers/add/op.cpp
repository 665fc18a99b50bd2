// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The residual addition, in the place of its first term where it may.

#include "core/model/op.hpp"
#include "core/base/check.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  CAROUSEL_CHECK(layer.inputs.size() == 2 && layer.inputs[1].shape == layer.input(),
                 "{}: {} is added to {}", layer.name, to_string(layer.inputs.back().shape),
                 to_string(layer.input()));
  infer_by_number(layer, 1, 1);
  layer.aliases_second_gradient = true;
  layer.output_recomputable = true;
  layer.in_place = true;
}

}  // namespace

Op add() {
  return {.name = "add", .infer = infer, .fit = fit_in_any_order};
}

}  // namespace carousel::ops
