// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// torch.nn.Sigmoid, 1 / (1 + exp(-x)).

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  // The exponential function is about ten operations.
  infer_from_input(layer, 13, 15);
}

}  // namespace

Op sigmoid() {
  return {.name = "sigmoid", .infer = infer, .fit = fit_in_any_order};
}

}  // namespace carousel::ops
