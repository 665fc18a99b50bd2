// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& around) {
  infer_loss(layer, 6, 4, around);
}

}  // namespace

/// torch.nn.BCEWithLogitsLoss (mean): an output is the logarithm of the odds that its target is 1
Op binary_cross_entropy() {
  return {.name = "binary_cross_entropy",
          .infer = infer,
          .fit = fit_loss,
          .loss = LossFacts{.name = "bce",
                            .doc = "the mean over the outputs x of log(1 + e^x) - x target, the "
                                   "cross entropy of a sigmoid; targets lie between 0 and 1.",
                            .metrics = {"accuracy"},
                            .takes_numbers = true,
                            .takes_shares = true}};
}

}  // namespace carousel::ops
