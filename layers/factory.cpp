// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/factory.hpp"

#include "core/base/check.hpp"
#include "layers/add.hpp"
#include "layers/batch_norm.hpp"
#include "layers/convolution.hpp"
#include "layers/dropout.hpp"
#include "layers/flatten.hpp"
#include "layers/linear.hpp"
#include "layers/pool.hpp"
#include "layers/relu.hpp"
#include "layers/softmax_cross_entropy.hpp"

namespace carousel {

std::unique_ptr<Layer> make_layer(const LayerSpec& spec) {
  switch (spec.kind) {
    case LayerKind::flatten:
      return std::make_unique<Flatten>();
    case LayerKind::linear:
      return std::make_unique<Linear>(spec);
    case LayerKind::relu:
      return std::make_unique<Relu>();
    case LayerKind::softmax_cross_entropy:
      return std::make_unique<SoftmaxCrossEntropy>(spec);
    case LayerKind::batch_norm:
      return std::make_unique<BatchNorm>(spec);
    case LayerKind::max_pool:
      return std::make_unique<MaxPool>(spec);
    case LayerKind::average_pool:
      return std::make_unique<AveragePool>(spec);
    case LayerKind::add:
      return std::make_unique<Add>(spec);
    case LayerKind::convolution:
      return std::make_unique<Convolution>(spec);
    case LayerKind::dropout:
      return std::make_unique<Dropout>(spec);
  }
  fail(ExitCode::internal, "layer {}: no kernels for kind {}", spec.name,
       static_cast<int>(spec.kind));
}

}  // namespace carousel
