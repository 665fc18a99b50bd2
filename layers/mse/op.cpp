// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  infer_loss(layer, 3, 2);
}

}  // namespace

/// torch.nn.MSELoss (mean) of targets that are 1 for the label and 0 for all other classes.
Op mse() {
  return {
      .name = "mse",
      .infer = infer,
      .fit = fit_in_plain_order,
      .loss = LossFacts{.name = "mse",
                        .doc = "the mean over the outputs of (output - target)^2; the target is "
                               "1 for the label, 0 for other classes.",
                        .metrics = {"accuracy"}}};
}

}  // namespace carousel::ops
