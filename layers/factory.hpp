// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// From the description of a layer to its kernels. The only place that knows all layers.

#include "core/engine/layer.hpp"

namespace carousel {

/// A LayerFactory. Images in blocks of channels have kernels of their own on hosts; all others read
/// and write contiguous NCHW in `real`.
[[nodiscard]] std::unique_ptr<Layer> make_layer(const LayerSpec& spec, int samples,
                                                const Engine& engine);

}  // namespace carousel
