// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Layers whose kernels come from a vendor, in builds that have its libraries. core/model says which
// layers of a plan are theirs.

#include <functional>
#include <memory>

#include "core/engine/layer.hpp"
#include "core/model/kernel_choice.hpp"

namespace carousel::vendor {

/// What the layers of one compute queue share; null in builds without such libraries.
[[nodiscard]] std::shared_ptr<VendorHandles> make_handles(const ExecutionSpace& exec);

/// make_handles for runs that use such libraries; others have none.
[[nodiscard]] inline std::function<std::shared_ptr<VendorHandles>(const ExecutionSpace&)>
handles_for(VendorKernels kernels) {
  if (kernels == VendorKernels::none) return {};
  return make_handles;
}

/// Error(internal) in builds without such libraries.
[[nodiscard]] std::unique_ptr<Layer> linear(const LayerSpec& spec, int samples,
                                            const Engine& engine);
[[nodiscard]] std::unique_ptr<Layer> patch_embedding(const LayerSpec& spec, int samples,
                                                     const Engine& engine);
/// Error(internal) in builds without cuDNN.
[[nodiscard]] std::unique_ptr<Layer> convolution(const LayerSpec& spec, int samples,
                                                 const Engine& engine);
[[nodiscard]] std::unique_ptr<Layer> attention(const LayerSpec& spec, const Engine& engine);

}  // namespace carousel::vendor
