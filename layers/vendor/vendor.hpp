// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Layers whose kernels come from a vendor, in builds that have its libraries. core/model says which
// layers of a plan are theirs.

#include <functional>
#include <memory>

#include "core/engine/layer.hpp"
#include "core/model/vendor.hpp"

namespace carousel::vendor {

/// What the layers of one compute queue share; null in builds without such libraries.
[[nodiscard]] std::shared_ptr<VendorHandles> make_handles(const ExecutionSpace& exec);

/// make_handles for runs that use such libraries; others have none.
[[nodiscard]] inline std::function<std::shared_ptr<VendorHandles>(const ExecutionSpace&)>
handles_for(VendorKernels kernels) {
  if (kernels == VendorKernels::none) return {};
  return make_handles;
}

/// Throws Error(internal) for a layer that is not theirs.
[[nodiscard]] std::unique_ptr<Layer> make_layer(const LayerSpec& spec, int samples,
                                                const Engine& engine);

}  // namespace carousel::vendor
