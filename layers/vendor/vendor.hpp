// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Layers whose kernels come from a vendor, in builds that have its libraries. core/model says which
// layers of a plan are theirs.

#include <memory>

#include "core/engine/layer.hpp"

namespace carousel::vendor {

/// What the layers of one compute queue share; null in builds without such libraries.
[[nodiscard]] std::shared_ptr<VendorHandles> make_handles(const ExecutionSpace& exec);

/// Throws Error(internal) for a layer that is not theirs.
[[nodiscard]] std::unique_ptr<Layer> make_layer(const LayerSpec& spec, int samples,
                                                const Engine& engine);

}  // namespace carousel::vendor
