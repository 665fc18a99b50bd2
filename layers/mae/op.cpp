// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& around) {
  infer_loss(layer, 2, 1, around);
}

}  // namespace

/// torch.nn.L1Loss (mean), whose gradient at 0 is 0
Op mae() {
  return {.name = "mae",
          .infer = infer,
          .fit = fit_loss,
          .loss = LossFacts{.name = "mae",
                            .doc = "the mean over the outputs of |output - target|.",
                            .metrics = {"accuracy"},
                            .takes_numbers = true}};
}

}  // namespace carousel::ops
