// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& /*around*/) {
  const int factor = arguments.whole("factor");
  layer.output = layer.input();
  layer.output.height *= factor;
  if (layer.input().width > 1) layer.output.width *= factor;
  layer.forward_flops = layer.backward_flops = 1.0 * static_cast<double>(layer.output.size());
}

std::string fit(LayerSpec& layer, const KernelChoice& /*choice*/) {
  return fit_portable(layer);
}

}  // namespace

/// torch.nn.Upsample(mode="nearest"): every pixel becomes a square of pixels.
Op upsample_nearest() {
  return {.name = "upsample_nearest",
          .arguments = {{.name = "factor", .least = 1, .most = 64}},
          .infer = infer,
          .fit = fit};
}

}  // namespace carousel::ops
