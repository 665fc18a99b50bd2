// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/engine/layer.hpp"
#include "layers/batch_norm/batch_norm.hpp"
#include "layers/blocked/blocked.hpp"
#include "layers/channels_last/norm.hpp"

namespace carousel::kernels {

std::unique_ptr<Layer> batch_norm(const LayerSpec& spec, int /*samples*/, const Engine& engine) {
  if (spec.kernels == Kernels::channels_last)
    return std::make_unique<channels_last::BatchNorm>(spec, engine);
  if constexpr (runs_on_host) {
    if (spec.kernels == Kernels::blocked) return blocked::batch_norm(spec, engine);
  }
  return std::make_unique<BatchNorm>(spec);
}

}  // namespace carousel::kernels
