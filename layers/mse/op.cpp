// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& around) {
  infer_loss(layer, 3, 2, around);
}

}  // namespace

/// torch.nn.MSELoss (mean)
Op mse() {
  return {
      .name = "mse",
      .infer = infer,
      .fit = fit_loss,
      .loss = LossFacts{.name = "mse",
                        .doc = "the mean over the outputs of (output - target)^2; of labels, the "
                               "target is 1 for the class, 0 for others.",
                        .metrics = {"accuracy"},
                        .takes_numbers = true}};
}

}  // namespace carousel::ops
