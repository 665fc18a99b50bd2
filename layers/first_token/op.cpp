// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The first token of a sample alone, the class token of a vision transformer.

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  layer.output = {layer.input().channels};
}

std::string fit(LayerSpec& layer, const KernelChoice& choice) {
  if (has_one_type(layer) && is_channels_last(layer, choice)) {
    layer.kernels = Kernels::channels_last;
    return "";
  }
  return is_blocked(layer, choice) ? "" : fit_portable(layer);
}

}  // namespace

Op first_token() {
  return {.name = "first_token", .infer = infer, .fit = fit};
}

}  // namespace carousel::ops
