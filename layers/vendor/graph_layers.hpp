// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the layers that cuDNN computes share: graph_layers.cpp has it, graphs_absent.cpp stands in
// its place in builds without cuDNN.

#include <memory>

#include "core/engine/layer.hpp"

namespace carousel::vendor {

class Graphs;

/// Null in builds without cuDNN.
[[nodiscard]] std::shared_ptr<Graphs> make_graphs(const ExecutionSpace& exec);

}  // namespace carousel::vendor
