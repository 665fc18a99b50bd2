// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The residual addition, in the place of its first term where it may.

#include "core/model/op.hpp"
#include "core/base/check.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  if (layer.inputs[1].shape != layer.input())
    fail(ExitCode::usage, "add adds {} and {}", to_string(layer.input()),
         to_string(layer.inputs[1].shape));
  infer_by_number(layer, 1, 1);
  layer.aliases_second_gradient = true;
  layer.output_recomputable = true;
  layer.in_place = true;
}

}  // namespace

Op add() {
  return {.name = "add", .joins = true, .infer = infer, .fit = fit_in_any_order};
}

}  // namespace carousel::ops
