// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// torch.nn.Hardswish (Howard et al. 2019, arXiv 1905.02244): x times ReLU6 of x + 3, by 6.

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  infer_from_input(layer, 5, 6);
}

}  // namespace

Op hard_swish() {
  return {.name = "hard_swish", .infer = infer, .fit = fit_in_any_order};
}

}  // namespace carousel::ops
