// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What kinds of layers that make images larger have in common.

#include "core/model/op.hpp"

namespace carousel::ops {

inline void infer_upsample(LayerSpec& layer, const GivenArguments& arguments,
                           const Surroundings& around, double flops_per_number) {
  const int factor = arguments.whole("factor");
  layer.output = with_each_axis(layer.input(), layer.input().channels, around.axes(),
                                [=](int extent) { return extent * factor; });
  layer.forward_flops = layer.backward_flops =
      flops_per_number * static_cast<double>(layer.output.size());
}

[[nodiscard]] inline Op upsample(const char* name, decltype(Op::infer) infer) {
  return {.name = name,
          .arguments = {{.name = "factor", .least = 1, .most = 64}},
          .infer = infer,
          .fit = [](LayerSpec& layer, const KernelChoice&) { return fit_portable(layer); }};
}

}  // namespace carousel::ops
