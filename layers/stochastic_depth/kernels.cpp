// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Stochastic depth (Huang et al. 2016, arXiv 1603.09382): at the end of a residual branch, a
// dropout of whole samples.

#include "core/engine/layer.hpp"
#include "layers/dropout/dropout.hpp"

namespace carousel::kernels {

std::unique_ptr<Layer> stochastic_depth(const LayerSpec& spec, int /*samples*/,
                                        const Engine& /*engine*/) {
  return std::make_unique<Dropout>(spec);
}

}  // namespace carousel::kernels
