// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/vendor/graph_layers.hpp"

#include "core/base/cuda_stream.hpp"
#include "layers/attention/op.hpp"
#include "layers/convolution/op.hpp"
#include "layers/vendor/attention.hpp"
#include "layers/vendor/convolution.hpp"
#include "layers/vendor/graphs.hpp"
#include "layers/vendor/vendor.hpp"

namespace carousel::vendor {

std::shared_ptr<Graphs> make_graphs(const ExecutionSpace& exec) {
  return std::make_shared<Graphs>(stream_of(exec));
}

std::unique_ptr<Layer> convolution(const LayerSpec& spec, int samples, const Engine& engine) {
  return std::make_unique<Convolution>(spec, samples, engine);
}

std::unique_ptr<Layer> attention(const LayerSpec& spec, const Engine& engine) {
  return std::make_unique<Attention>(spec, engine);
}

}  // namespace carousel::vendor
