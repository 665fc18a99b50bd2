// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Kernels on tensors that are stored otherwise than they want them, in another type or in another
// order: what a layer reads is converted before each call and what it writes behind it, in its
// workspace. Sums, what is saved and gradients of parameters are full numbers in plain order.

#include <memory>

#include "core/engine/layer.hpp"

namespace carousel {

/// `make` makes the layer as its kernels see it.
[[nodiscard]] std::unique_ptr<Layer> make_converted(const LayerSpec& spec, int samples,
                                                    const Engine& engine, const LayerFactory& make);

}  // namespace carousel
