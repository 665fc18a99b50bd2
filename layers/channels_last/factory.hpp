// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// From the description of a layer whose channels lie side by side to its kernels, on any backend.

#include "core/engine/layer.hpp"

namespace carousel::channels_last {

/// Null where the portable kernels do for a layer.
[[nodiscard]] std::unique_ptr<Layer> make_layer(const LayerSpec& spec, int samples,
                                                const Engine& engine);

}  // namespace carousel::channels_last
