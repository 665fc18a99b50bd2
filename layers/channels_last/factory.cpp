// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/channels_last/factory.hpp"

#include "layers/channels_last/first_token.hpp"
#include "layers/channels_last/layer_norm.hpp"
#include "layers/channels_last/norm.hpp"
#include "layers/channels_last/pool.hpp"

namespace carousel::channels_last {

std::unique_ptr<Layer> make_layer(const LayerSpec& spec, int samples, const Engine& engine) {
  if (spec.is<kind::BatchNorm>()) return std::make_unique<BatchNorm>(spec, engine);
  if (spec.is<kind::LayerNorm>()) return std::make_unique<LayerNorm>(spec, engine);
  if (spec.is<kind::FirstToken>()) return std::make_unique<FirstToken>(spec);
  if (spec.is<kind::MaxPool>()) return std::make_unique<MaxPool>(spec, samples);
  if (spec.is<kind::AveragePool>()) return std::make_unique<AveragePool>(spec);
  return nullptr;
}

}  // namespace carousel::channels_last
