// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/engine/layer.hpp"
#include "layers/add/add.hpp"

namespace carousel::kernels {

std::unique_ptr<Layer> add(const LayerSpec& spec, int /*samples*/, const Engine& /*engine*/) {
  return std::make_unique<Add>(spec);
}

}  // namespace carousel::kernels
