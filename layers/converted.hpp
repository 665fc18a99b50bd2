// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Kernels that compute with full numbers on tensors that are stored in other types: what a layer
// reads is converted before each call and what it writes behind it, in its workspace. Sums, what is
// saved and gradients of parameters are full numbers.

#include <functional>
#include <memory>

#include "core/engine/layer.hpp"

namespace carousel {

/// `make` makes the layer of a spec whose tensors are all full numbers.
[[nodiscard]] std::unique_ptr<Layer> make_converted(
    const LayerSpec& spec, int samples, const Engine& engine,
    const std::function<std::unique_ptr<Layer>(const LayerSpec&, int, const Engine&)>& make);

}  // namespace carousel
