// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// torch.nn.Flatten: [c, h, w] becomes features, whose order is the plain one.

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  layer.output = {static_cast<int>(layer.input().size())};
  layer.in_place = true;
}

std::string fit(LayerSpec& layer, const KernelChoice& /*choice*/) {
  if (layer.in_place) return "";  // it does nothing
  return fit_portable(layer);
}

}  // namespace

Op flatten() {
  return {.name = "flatten", .infer = infer, .fit = fit};
}

}  // namespace carousel::ops
