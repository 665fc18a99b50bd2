// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/factory.hpp"

#include "layers/blocked/attention.hpp"
#include "layers/blocked/convolution.hpp"
#include "layers/blocked/norm.hpp"
#include "layers/blocked/pool.hpp"
#include "layers/patch_embedding.hpp"

namespace carousel::blocked {

std::unique_ptr<Layer> make_layer(const LayerSpec& spec, int samples, const Engine& engine) {
  if (spec.is<kind::Convolution>() || spec.is<kind::Linear>())
    return std::make_unique<Convolution>(spec, engine);
  if (spec.is<kind::PatchEmbedding>())
    return std::make_unique<PatchEmbedding>(
        spec, std::make_unique<Convolution>(convolution_of_patches(spec), engine, 1));
  if (spec.is<kind::Attention>()) return std::make_unique<Attention>(spec);
  if (spec.is<kind::BatchNorm>()) return std::make_unique<BatchNorm>(spec, engine);
  if (spec.is<kind::MaxPool>()) return std::make_unique<MaxPool>(spec, samples, engine);
  if (spec.is<kind::AveragePool>()) return std::make_unique<AveragePool>(spec);
  return nullptr;
}

}  // namespace carousel::blocked
