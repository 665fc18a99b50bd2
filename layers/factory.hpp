// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// From the description of a layer to its kernels.

#include "core/engine/layer.hpp"

namespace carousel {

/// A LayerFactory of all kinds in layers/, with conversions around those that want them.
[[nodiscard]] std::unique_ptr<Layer> make_layer(const LayerSpec& spec, int samples,
                                                const Engine& engine);

/// The kernels of one kind. The build writes the list of all.
struct OpKernels {
  const char* name;
  std::unique_ptr<Layer> (*make)(const LayerSpec& spec, int samples, const Engine& engine);
};
[[nodiscard]] std::span<const OpKernels> all_kernels();

}  // namespace carousel
