// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

/// Backward needs the outputs, which stay where they are.
void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  layer.output = layer.input();
  layer.forward_flops = 3.0 * static_cast<double>(layer.input().size());
  layer.backward_flops = 2.0 * static_cast<double>(layer.input().size());
  layer.saves_output = true;
  layer.in_place = true;
}

std::string fit(LayerSpec& layer, const KernelChoice& /*choice*/) {
  return is_plain(layer) ? "" : "it computes in plain order";
}

}  // namespace

/// torch.nn.MSELoss (mean) of targets that are 1 for the label and 0 for all other classes.
Op mse() {
  return {
      .name = "mse",
      .infer = infer,
      .fit = fit,
      .loss = LossFacts{.name = "mse",
                        .doc = "the mean over the outputs of (output - target)^2; the target is "
                               "1 for the label, 0 for other classes.",
                        .metrics = {"accuracy"}}};
}

}  // namespace carousel::ops
