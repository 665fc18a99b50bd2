// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// torch.nn.Hardsigmoid (Howard et al. 2019, arXiv 1905.02244): ReLU6 of x + 3, by 6.

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  infer_from_input(layer, 4, 3);
}

}  // namespace

Op hard_sigmoid() {
  return {.name = "hard_sigmoid", .infer = infer, .fit = fit_in_any_order};
}

}  // namespace carousel::ops
