// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// torch.nn.GELU(approximate="tanh") (Hendrycks & Gimpel 2016, arXiv 1606.08415), as GPT-2 has it.

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  // The exponential function is about ten operations.
  infer_from_input(layer, 18, 24);
}

}  // namespace

Op gelu_tanh() {
  return {.name = "gelu_tanh", .infer = infer, .fit = fit_in_any_order};
}

}  // namespace carousel::ops
