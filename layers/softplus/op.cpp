// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/softplus/op.hpp"

// torch.nn.Softplus: log(1 + exp(beta x)) / beta.

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& /*around*/) {
  layer.attributes = op::Softplus{arguments.number("beta"), arguments.number("threshold")};
  // The exponential function and the logarithm are about ten operations each.
  infer_from_input(layer, 24, 15);
}

}  // namespace

Op softplus() {
  constexpr op::Softplus standard;
  ArgumentSpec beta = any_number("beta", standard.beta);
  beta.least = 1e-6;
  return {.name = "softplus",
          .arguments = {beta, any_number("threshold", standard.threshold)},
          .infer = infer,
          .fit = fit_in_any_order};
}

}  // namespace carousel::ops
