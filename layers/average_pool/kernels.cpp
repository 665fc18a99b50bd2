// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/engine/layer.hpp"
#include "layers/blocked/blocked.hpp"
#include "layers/channels_last/pool.hpp"
#include "layers/pool.hpp"

namespace carousel::kernels {

std::unique_ptr<Layer> average_pool(const LayerSpec& spec, int /*samples*/,
                                    const Engine& /*engine*/) {
  if (spec.kernels == Kernels::channels_last)
    return std::make_unique<channels_last::AveragePool>(spec);
  if constexpr (runs_on_host) {
    if (spec.kernels == Kernels::blocked) return blocked::average_pool(spec);
  }
  return std::make_unique<AveragePool>(spec);
}

}  // namespace carousel::kernels
