// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/model/op.hpp"
#include "layers/average_pool/op.hpp"
#include "layers/pool_op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& around) {
  const Window window = pool_window_of(arguments, around);
  layer.attributes = op::AveragePool{window};
  layer.output = behind_window(layer, layer.input().channels, window, around);
  layer.forward_flops = window.taps() * static_cast<double>(layer.output.size());
  layer.backward_flops = layer.forward_flops;
}

std::string fit(LayerSpec& layer, const KernelChoice& /*choice*/) {
  return fit_portable(layer);
}

}  // namespace

/// torch.nn.AvgPool2d, whose padding counts as zeros.
Op avg_pool() {
  return {.name = "avg_pool", .arguments = pool_arguments(), .infer = infer, .fit = fit};
}

}  // namespace carousel::ops
