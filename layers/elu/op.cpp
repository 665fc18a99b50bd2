// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/elu/op.hpp"

// torch.nn.ELU (Clevert et al. 2015, arXiv 1511.07289): below zero alpha (exp(x) - 1).

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& /*around*/) {
  layer.attributes = op::Elu{arguments.number("alpha")};
  // The exponential function is about ten operations.
  infer_from_input(layer, 12, 12);
}

}  // namespace

Op elu() {
  return {.name = "elu",
          .arguments = {any_number("alpha", op::Elu{}.alpha)},
          .infer = infer,
          .fit = fit_in_any_order};
}

}  // namespace carousel::ops
