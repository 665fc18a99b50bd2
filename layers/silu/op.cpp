// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// torch.nn.SiLU, x times the logistic function of x (Elfwing et al. 2017, arXiv 1702.03118).

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  // The exponential function is about ten operations.
  infer_from_input(layer, 14, 19);
}

}  // namespace

Op silu() {
  return {.name = "silu", .infer = infer, .fit = fit_in_any_order};
}

}  // namespace carousel::ops
