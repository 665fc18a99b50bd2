// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/engine/layer.hpp"
#include "layers/blocked/blocked.hpp"
#include "layers/convolution/convolution.hpp"
#include "layers/linear/linear.hpp"
#include "layers/vendor/vendor.hpp"

namespace carousel::kernels {

std::unique_ptr<Layer> linear(const LayerSpec& spec, int samples, const Engine& engine) {
  if (spec.kernels == Kernels::vendor) return vendor::linear(spec, samples, engine);
  if constexpr (runs_on_host) {
    if (spec.kernels == Kernels::blocked) return blocked::convolution(spec, engine);
  }
  // Of tokens it is a convolution of pixels.
  if (spec.input().pixels() > 1) return std::make_unique<Convolution>(spec);
  return std::make_unique<Linear>(spec);
}

}  // namespace carousel::kernels
