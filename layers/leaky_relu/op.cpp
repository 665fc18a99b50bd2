// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/leaky_relu/op.hpp"

// torch.nn.LeakyReLU (Maas et al. 2013): below zero a small multiple of x.

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& /*around*/) {
  layer.attributes = op::LeakyRelu{arguments.number("negative_slope")};
  infer_from_input(layer, 2, 2);
}

}  // namespace

Op leaky_relu() {
  return {.name = "leaky_relu",
          .arguments = {any_number("negative_slope", op::LeakyRelu{}.negative_slope)},
          .infer = infer,
          .fit = fit_in_any_order};
}

}  // namespace carousel::ops
