// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/huber/op.hpp"

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& around) {
  layer.attributes = op::Huber{arguments.number("delta")};
  infer_loss(layer, 6, 4, around);
}

}  // namespace

/// torch.nn.HuberLoss (mean; Huber 1964)
Op huber() {
  return {
      .name = "huber",
      .arguments = {{.name = "delta",
                     .otherwise = op::Huber{}.delta,
                     .least = 1e-6,
                     .whole = false,
                     .doc = "Error from which on the loss grows with it, not with its square."}},
      .infer = infer,
      .fit = fit_loss,
      .loss = LossFacts{.name = "huber",
                        .doc = "the mean over the outputs of e^2 / 2 where |e| < delta, delta "
                               "(|e| - delta / 2) elsewhere; e is the output less the "
                               "target, which of labels is 1 for the class, 0 for others.",
                        .metrics = {"accuracy"},
                        .takes_numbers = true}};
}

}  // namespace carousel::ops
