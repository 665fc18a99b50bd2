// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one alignment of tensors in memory, which plans and kernels share, and how to reach another.

#include <cstdint>

namespace carousel {

/// Every tensor starts at a multiple of this many bytes.
inline constexpr std::int64_t tensor_alignment = 64;

[[nodiscard]] constexpr std::int64_t align_up(std::int64_t bytes,
                                              std::int64_t alignment = tensor_alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace carousel
