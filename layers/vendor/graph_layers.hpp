// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The layers that cuDNN computes: graph_layers.cpp has them, graphs_absent.cpp stands in its place
// in builds without cuDNN.

#include <memory>

#include "core/engine/layer.hpp"

namespace carousel::vendor {

class Graphs;

/// Null in builds without cuDNN.
[[nodiscard]] std::shared_ptr<Graphs> make_graphs(const ExecutionSpace& exec);

/// Throws Error(internal) for a layer that is not theirs.
[[nodiscard]] std::unique_ptr<Layer> make_graph_layer(const LayerSpec& spec, int samples,
                                                      const Engine& engine);

}  // namespace carousel::vendor
