// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// In place of graph_layers.cpp in builds without cuDNN.

#include "core/base/check.hpp"
#include "layers/vendor/graph_layers.hpp"
#include "layers/vendor/vendor.hpp"

namespace carousel::vendor {

std::shared_ptr<Graphs> make_graphs(const ExecutionSpace& /*exec*/) {
  return nullptr;
}

std::unique_ptr<Layer> convolution(const LayerSpec& spec, int /*samples*/,
                                   const Engine& /*engine*/) {
  fail(ExitCode::internal, "{}: this program was built without cuDNN", spec.label());
}

std::unique_ptr<Layer> attention(const LayerSpec& spec, const Engine& /*engine*/) {
  fail(ExitCode::internal, "{}: this program was built without cuDNN", spec.label());
}

}  // namespace carousel::vendor
