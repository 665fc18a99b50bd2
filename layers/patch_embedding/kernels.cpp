// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/engine/layer.hpp"
#include "layers/blocked/blocked.hpp"
#include "layers/convolution/convolution.hpp"
#include "layers/patch_embedding/op.hpp"
#include "layers/patch_embedding/patch_embedding.hpp"
#include "layers/vendor/vendor.hpp"

namespace carousel::kernels {

std::unique_ptr<Layer> patch_embedding(const LayerSpec& spec, int samples, const Engine& engine) {
  if (spec.kernels == Kernels::vendor) return vendor::patch_embedding(spec, samples, engine);
  const LayerSpec convolution = convolution_of_patches(spec);
  if constexpr (runs_on_host) {
    if (spec.kernels == Kernels::blocked)
      return std::make_unique<PatchEmbedding>(spec, blocked::convolution(convolution, engine, 1));
  }
  return std::make_unique<PatchEmbedding>(spec, std::make_unique<Convolution>(convolution, 1));
}

}  // namespace carousel::kernels
