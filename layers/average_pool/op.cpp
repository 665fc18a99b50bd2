// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/average_pool/op.hpp"

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  layer.attributes = op::AveragePool{Window{.kernel = 0}};
  layer.output = {layer.input().channels};
  layer.forward_flops = layer.backward_flops = static_cast<double>(layer.input().size());
}

std::string fit(LayerSpec& layer, const KernelChoice& choice) {
  if (is_channels_last(layer, choice))
    layer.kernels = Kernels::channels_last;
  else if (is_blocked(layer, choice))
    layer.kernels = Kernels::blocked;
  return layer.kernels == Kernels::portable ? fit_portable(layer) : "";
}

}  // namespace

/// torch.nn.AdaptiveAvgPool2d(1)
Op average_pool() {
  return {.name = "average_pool", .deck_word = "global_avg_pool", .infer = infer, .fit = fit};
}

}  // namespace carousel::ops
