// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/engine/layer.hpp"
#include "layers/attention/attention.hpp"
#include "layers/blocked/blocked.hpp"
#include "layers/vendor/vendor.hpp"

namespace carousel::kernels {

std::unique_ptr<Layer> attention(const LayerSpec& spec, int /*samples*/, const Engine& engine) {
  if (spec.kernels == Kernels::vendor) return vendor::attention(spec, engine);
  if constexpr (runs_on_host) {
    if (spec.kernels == Kernels::blocked) return blocked::attention(spec);
  }
  return std::make_unique<Attention>(spec, engine);
}

}  // namespace carousel::kernels
