// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What plans know of kinds of layers that drop something at random and scale what is left.

#include "core/model/op.hpp"
#include "layers/dropout/op.hpp"

namespace carousel::ops {

template <bool OfSamples>
[[nodiscard]] Op dropping(const char* name) {
  const auto infer = [](LayerSpec& layer, const GivenArguments& arguments,
                        const Surroundings& /*around*/) {
    layer.attributes = op::Dropout{arguments.number("probability"), OfSamples};
    infer_by_number(layer, 1, 1);
    layer.output_recomputable = true;
    layer.in_place = layer.scales = true;
  };
  return {.name = name,
          .arguments = {{.name = "probability", .least = 0, .most = 0.999, .whole = false}},
          .infer = infer,
          .fit = fit_in_any_order};
}

}  // namespace carousel::ops
