// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/engine/layer.hpp"
#include "layers/channels_last/layer_norm.hpp"
#include "layers/layer_norm/layer_norm.hpp"

namespace carousel::kernels {

std::unique_ptr<Layer> layer_norm(const LayerSpec& spec, int /*samples*/, const Engine& engine) {
  if (spec.kernels == Kernels::channels_last)
    return std::make_unique<channels_last::LayerNorm>(spec, engine);
  return std::make_unique<LayerNorm>(spec);
}

}  // namespace carousel::kernels
