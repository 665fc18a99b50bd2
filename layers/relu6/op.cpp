// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// torch.nn.ReLU6: what is below 0 becomes 0, what is above 6 becomes 6.

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  infer_from_input(layer, 2, 2);
}

}  // namespace

Op relu6() {
  return {.name = "relu6", .infer = infer, .fit = fit_in_any_order};
}

}  // namespace carousel::ops
