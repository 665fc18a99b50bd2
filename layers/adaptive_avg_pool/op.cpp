// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& around) {
  const int size = arguments.whole("size");
  layer.output = with_each_axis(layer.input(), layer.input().channels, around.axes(),
                                [=](int /*extent*/) { return size; });
  // Windows of neighbours may share a row and a column.
  const auto numbers = static_cast<double>(layer.input().size() + layer.output.size());
  layer.forward_flops = layer.backward_flops = numbers;
}

std::string fit(LayerSpec& layer, const KernelChoice& /*choice*/) {
  return fit_portable(layer);
}

}  // namespace

/// torch.nn.AdaptiveAvgPool2d to a square, AdaptiveAvgPool3d to a cube, or AdaptiveAvgPool1d:
/// window o of `size` goes from floor(o n / size) to ceil((o + 1) n / size).
Op adaptive_avg_pool() {
  return {.name = "adaptive_avg_pool",
          .arguments = {{.name = "size", .least = 1}},
          .infer = infer,
          .fit = fit};
}

}  // namespace carousel::ops
