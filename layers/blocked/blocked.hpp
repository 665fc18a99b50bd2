// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of blocked activations on hosts, for who has no vector registers of a host: builds
// for GPUs read this file, but call and link none of them.

#include <memory>

#include "core/engine/layer.hpp"

namespace carousel::blocked {

/// Of a linear layer of tokens, too. The outputs of a plane lie behind `before` pixels that others
/// write.
[[nodiscard]] std::unique_ptr<Layer> convolution(const LayerSpec& spec, const Engine& engine,
                                                 int before = 0);
[[nodiscard]] std::unique_ptr<Layer> depthwise(const LayerSpec& spec, const Engine& engine);
[[nodiscard]] std::unique_ptr<Layer> conv_transpose(const LayerSpec& spec, const Engine& engine);
[[nodiscard]] std::unique_ptr<Layer> attention(const LayerSpec& spec);
[[nodiscard]] std::unique_ptr<Layer> batch_norm(const LayerSpec& spec, const Engine& engine);
[[nodiscard]] std::unique_ptr<Layer> group_norm(const LayerSpec& spec, const Engine& engine);
[[nodiscard]] std::unique_ptr<Layer> max_pool(const LayerSpec& spec, int samples,
                                              const Engine& engine);
[[nodiscard]] std::unique_ptr<Layer> average_pool(const LayerSpec& spec);

}  // namespace carousel::blocked
