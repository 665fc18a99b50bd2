// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// torch.nn.GELU, without approximation.

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  // The error function and, backward, the normal density are about ten operations each.
  infer_from_input(layer, 20, 25);
}

}  // namespace

Op gelu() {
  return {.name = "gelu", .infer = infer, .fit = fit_in_any_order};
}

}  // namespace carousel::ops
