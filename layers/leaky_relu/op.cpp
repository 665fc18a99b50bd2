// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/leaky_relu/op.hpp"

// torch.nn.LeakyReLU (Maas et al. 2013): below zero a small multiple of x.

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& /*around*/) {
  layer.attributes = op::LeakyRelu{arguments.number("negative_slope")};
  infer_by_number(layer, 2, 2);
  // Not in place, though the sign of the output would do: an addition or a dropout behind it, which
  // are in place, would change what backward reads.
  layer.saves_input = true;
  layer.output_recomputable = true;
}

}  // namespace

Op leaky_relu() {
  constexpr double most = 1 << 24;
  return {.name = "leaky_relu",
          .arguments = {{.name = "negative_slope",
                         .otherwise = op::LeakyRelu{}.negative_slope,
                         .least = -most,
                         .most = most,
                         .whole = false}},
          .infer = infer,
          .fit = fit_in_any_order};
}

}  // namespace carousel::ops
