// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/vendor/graph_layers.hpp"

#include "core/base/check.hpp"
#include "core/base/cuda_stream.hpp"
#include "layers/vendor/attention.hpp"
#include "layers/vendor/convolution.hpp"
#include "layers/vendor/graphs.hpp"

namespace carousel::vendor {

std::shared_ptr<Graphs> make_graphs(const ExecutionSpace& exec) {
  return std::make_shared<Graphs>(stream_of(exec));
}

std::unique_ptr<Layer> make_graph_layer(const LayerSpec& spec, int samples, const Engine& engine) {
  if (spec.is<kind::Convolution>()) return std::make_unique<Convolution>(spec, samples, engine);
  if (spec.is<kind::Attention>()) return std::make_unique<Attention>(spec, engine);
  fail(ExitCode::internal, "{}: no vendor has kernels for it", spec.label());
}

}  // namespace carousel::vendor
