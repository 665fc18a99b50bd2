// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How kernels of tokens find their numbers, whatever blocks of channels they lie in. One source
// serves processors, whose registers a block fills, and GPUs, which have blocks of one.

#include <cstdint>

#include "core/base/check.hpp"
#include "core/base/vectors.hpp"
#include "core/base/view.hpp"
#include "core/model/tensor_format.hpp"
#include "layers/stored.hpp"

namespace carousel::detail {

/// [n][c / Block][tokens][Block]
template <int Block>
struct Tokens {
  int blocks;
  int tokens;

  explicit Tokens(const SampleShape& shape)
      : blocks(shape.channels / Block), tokens(static_cast<int>(shape.pixels())) {}

  [[nodiscard]] KOKKOS_FUNCTION int channels() const { return blocks * Block; }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t plane_size() const {
    return std::int64_t{tokens} * Block;
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t offset(int image, int block, int token) const {
    return (std::int64_t{image} * blocks + block) * plane_size() + std::int64_t{token} * Block;
  }
};

/// The same of any block.
struct TokenRows {
  int block;
  int blocks;
  int tokens;

  TokenRows(const SampleShape& shape, const TensorFormat& format)
      : block(format.block),
        blocks(shape.channels / format.block),
        tokens(static_cast<int>(shape.pixels())) {}

  [[nodiscard]] KOKKOS_FUNCTION int channels() const { return blocks * block; }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t offset(std::int64_t image, int b, int token) const {
    return ((image * blocks + b) * tokens + token) * block;
  }
  /// Calls visit(offset, channel) for every feature of token `row` of all images.
  template <class Visit>
  KOKKOS_FUNCTION void for_each(std::int64_t row, const Visit& visit) const {
    for (int b = 0; b < blocks; ++b) {
      const std::int64_t begin = offset(row / tokens, b, static_cast<int>(row % tokens));
      for (int l = 0; l < block; ++l) visit(begin + l, b * block + l);
    }
  }

  /// Neighbouring features that a thread takes together: a host those of a block.
  [[nodiscard]] KOKKOS_FUNCTION int together() const { return runs_on_host ? block : 1; }
  /// Of a token.
  [[nodiscard]] KOKKOS_FUNCTION int pieces() const { return channels() / together(); }
  /// Where piece `piece` of token `row` of all images begins.
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t piece_offset(std::int64_t row, int piece) const {
    const int c = piece * together();
    return offset(row / tokens, c / block, static_cast<int>(row % tokens)) + c % block;
  }
};

/// Calls run.operator()<Block>() for the block of a format that there are kernels for.
template <class Run>
void with_block(const TensorFormat& format, const Run& run) {
  if (format.block == 1) return run.template operator()<1>();
  if constexpr (vector_block > 1) {
    CAROUSEL_CHECK(format.block == vector_block, "tokens in {}", to_string(format));
    run.template operator()<vector_block>();
  }
}

/// Calls run.operator()<Block, Stored>() for the type as well.
template <class Run>
void with_format(const TensorFormat& format, const Run& run) {
  with_block(format, [&]<int Block>() {
    with_stored(format.type, [&]<class Stored>() { run.template operator()<Block, Stored>(); });
  });
}

}  // namespace carousel::detail
