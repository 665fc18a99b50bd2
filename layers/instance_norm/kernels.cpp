// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/engine/layer.hpp"

namespace carousel::kernels {

std::unique_ptr<Layer> group_norm(const LayerSpec& spec, int samples, const Engine& engine);

std::unique_ptr<Layer> instance_norm(const LayerSpec& spec, int samples, const Engine& engine) {
  return group_norm(spec, samples, engine);
}

}  // namespace carousel::kernels
