// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/engine/layer.hpp"
#include "layers/blocked/blocked.hpp"
#include "layers/channels_last/pool.hpp"
#include "layers/pool.hpp"

namespace carousel::kernels {

std::unique_ptr<Layer> max_pool(const LayerSpec& spec, [[maybe_unused]] int samples,
                                [[maybe_unused]] const Engine& engine) {
  if (spec.kernels == Kernels::channels_last)
    return std::make_unique<channels_last::MaxPool>(spec, samples);
  if constexpr (runs_on_host) {
    if (spec.kernels == Kernels::blocked) return blocked::max_pool(spec, samples, engine);
  }
  return std::make_unique<MaxPool>(spec);
}

}  // namespace carousel::kernels
