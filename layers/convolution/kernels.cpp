// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/engine/layer.hpp"
#include "layers/blocked/blocked.hpp"
#include "layers/convolution/convolution.hpp"
#include "layers/convolution/op.hpp"
#include "layers/vendor/vendor.hpp"

namespace carousel::kernels {

std::unique_ptr<Layer> convolution(const LayerSpec& spec, int samples, const Engine& engine) {
  if (spec.kernels == Kernels::vendor) return vendor::convolution(spec, samples, engine);
  if constexpr (runs_on_host) {
    if (spec.kernels == Kernels::blocked) {
      return spec.as<op::Convolution>().groups > 1 ? blocked::depthwise(spec, engine)
                                                   : blocked::convolution(spec, engine);
    }
  }
  return std::make_unique<Convolution>(spec);
}

}  // namespace carousel::kernels
