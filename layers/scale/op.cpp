// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/scale/op.hpp"

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& /*around*/) {
  layer.attributes = op::Scale{arguments.number("factor")};
  infer_by_number(layer, 1, 1);
  layer.output_recomputable = true;
  layer.in_place = true;
  layer.scales = arguments.number("factor") > 0;
}

}  // namespace

/// Every number times a constant, in the place of its input where it may.
Op scale() {
  ArgumentSpec factor = any_number("factor", 1);
  factor.otherwise = {};
  return {.name = "scale", .arguments = {factor}, .infer = infer, .fit = fit_in_any_order};
}

}  // namespace carousel::ops
