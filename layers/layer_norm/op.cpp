// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/layer_norm/op.hpp"

#include "core/model/op.hpp"
#include "core/model/workspace.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& /*around*/) {
  const bool has_bias = arguments.flag("bias");
  layer.attributes = op::LayerNorm{arguments.number("epsilon"), has_bias};
  layer.parameters = channel_parameters(layer);
  if (!has_bias) layer.parameters.pop_back();
  // Per number; forward: mean 1, variance 3, result 4; backward: four sums 6, result 6.
  infer_from_input(layer, 8, 12);
}

std::string fit(LayerSpec& layer, const KernelChoice& choice) {
  const std::int64_t token = 2 * std::int64_t{sizeof(real)};
  layer.saved = {{"statistics", {0, layer.input().pixels() * token}, true}};
  if (has_one_type(layer) && is_channels_last(layer, choice)) {
    layer.kernels = Kernels::channels_last;
    layer.workspace = {{norm_workspace, 0}};
    return "";
  }
  return is_blocked(layer, choice) ? "" : fit_portable(layer);
}

}  // namespace

/// torch.nn.LayerNorm of each token
Op layer_norm() {
  return {.name = "layer_norm",
          .arguments = {epsilon_argument(op::LayerNorm{}.epsilon),
                        {.name = "bias", .otherwise = 1, .most = 1}},
          .infer = infer,
          .fit = fit};
}

}  // namespace carousel::ops
