// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where libraries work: they want it aligned more than tensors are.

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/align.hpp"

namespace carousel::vendor {

/// cuBLASLt takes no less; cuDNN says nothing.
inline constexpr std::int64_t workspace_alignment = 256;

/// Of so many bytes, those that are left wherever they lie.
[[nodiscard]] constexpr std::int64_t usable_bytes(std::int64_t workspace) {
  return workspace - workspace_alignment;
}
[[nodiscard]] inline std::byte* aligned(std::span<std::byte> workspace) {
  const auto address = reinterpret_cast<std::intptr_t>(workspace.data());
  return workspace.data() + (align_up(address, workspace_alignment) - address);
}

}  // namespace carousel::vendor
