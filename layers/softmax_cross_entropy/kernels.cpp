// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/engine/layer.hpp"
#include "layers/softmax_cross_entropy/softmax_cross_entropy.hpp"

namespace carousel::kernels {

std::unique_ptr<Layer> softmax_cross_entropy(const LayerSpec& spec, int /*samples*/,
                                             const Engine& /*engine*/) {
  return std::make_unique<SoftmaxCrossEntropy>(spec);
}

}  // namespace carousel::kernels
