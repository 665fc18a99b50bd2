// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How squares of many numbers are added up: those of a block by one thread, and the sums of blocks
// in their order, so that a norm depends on no number of threads.

#include <cstdint>

namespace carousel {

/// Numbers of a block, but for the last one.
inline constexpr std::int64_t norm_block = 4096;

[[nodiscard]] constexpr std::int64_t norm_blocks(std::int64_t size) {
  return (size + norm_block - 1) / norm_block;
}
/// Bytes of the sums of all blocks, which are doubles.
[[nodiscard]] constexpr std::int64_t norm_bytes(std::int64_t size) {
  return norm_blocks(size) * std::int64_t{sizeof(double)};
}

}  // namespace carousel
