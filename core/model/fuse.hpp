// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Replaces runs of layers by single layers that do the same in fewer passes over memory, before the
// model is cut. It renames no parameter; which fusions there are core/model/kernels.hpp says.

#include <functional>
#include <span>
#include <vector>

#include "core/model/model.hpp"

namespace carousel {

/// A run of layers, each of which reads what the one before left, and the layer that stands for it.
struct Fusion {
  /// Whether layer k of the run may be this one; [length of the run].
  std::vector<bool (*)(const LayerSpec&)> matches;
  /// Completes the layer: its kind and what it saves, works with and may do in place. Set already
  /// are what follows from the run: the name of the first layer, inputs from outside the run and
  /// parameters and buffers in their order, the output of the last one, and the sum of the FLOPs.
  std::function<void(std::span<const LayerSpec> run, LayerSpec& fused)> complete;
  bool is_sole_reader = false;  // nobody but the run may read its first input
};

/// Of several fusions that match at a layer the first one is taken. A run whose intermediate
/// tensors are read by others stays as it is.
[[nodiscard]] Model fuse(const Model& model, std::span<const Fusion> fusions);

}  // namespace carousel
