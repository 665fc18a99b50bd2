// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/factory.hpp"

#include "layers/blocked/convolution.hpp"
#include "layers/blocked/norm.hpp"
#include "layers/blocked/pool.hpp"

namespace carousel::blocked {

std::unique_ptr<Layer> make_layer(const LayerSpec& spec, int samples, const Engine& engine) {
  if (spec.is<kind::Convolution>()) return std::make_unique<Convolution>(spec, engine);
  if (spec.is<kind::BatchNorm>()) return std::make_unique<BatchNorm>(spec, engine);
  if (spec.is<kind::MaxPool>()) return std::make_unique<MaxPool>(spec, samples, engine);
  if (spec.is<kind::AveragePool>()) return std::make_unique<AveragePool>(spec);
  return nullptr;
}

}  // namespace carousel::blocked
