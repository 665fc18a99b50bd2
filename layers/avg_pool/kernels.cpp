// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/engine/layer.hpp"
#include "layers/pool.hpp"

namespace carousel::kernels {

std::unique_ptr<Layer> avg_pool(const LayerSpec& spec, int /*samples*/, const Engine& /*engine*/) {
  return std::make_unique<AveragePool>(spec);
}

}  // namespace carousel::kernels
