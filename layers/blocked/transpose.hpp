// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Squares of numbers whose rows become columns, in registers.

#include <bit>
#include <utility>

#include "layers/blocked/products.hpp"

namespace carousel::blocked {

/// Numbers of two rows that are Far apart: those that belong to the first, or to the second.
template <int Far, class Vector, int... J>
[[gnu::always_inline]] inline void exchange(Vector& first, Vector& second,
                                            std::integer_sequence<int, J...> /*columns*/) {
  const Vector before = first;
  first = __builtin_shufflevector(before, second, ((J & Far) != 0 ? lanes + J - Far : J)...);
  second = __builtin_shufflevector(before, second, ((J & Far) != 0 ? lanes + J : J + Far)...);
}

/// Squares of Rows x Rows numbers side by side are turned, each by itself.
template <int Rows, int Far = 1, class Vector>
[[gnu::always_inline]] inline void transpose(Vector (&rows)[Rows]) {
  static_assert(Rows <= lanes && (Rows & (Rows - 1)) == 0);
  if constexpr (Far < Rows) {
    CAROUSEL_UNROLL_ALL
    for (int i = 0; i < Rows; ++i) {
      if ((i & Far) == 0)
        exchange<Far>(rows[i], rows[i + Far], std::make_integer_sequence<int, lanes>());
    }
    transpose<Rows, 2 * Far>(rows);
  }
}

/// The numbers of two blocks in a register.
template <int... J>
[[gnu::always_inline]] inline void join(Words& to, const Bfloat16* first, const Bfloat16* second,
                                        std::integer_sequence<int, J...> /*numbers*/) {
  to = std::bit_cast<Words>(__builtin_shufflevector(
      *reinterpret_cast<const Halves*>(first), *reinterpret_cast<const Halves*>(second), J...));
}

/// to[c / together][l][together] = at(l)[c] for as many c and l as a register has lanes, with rows
/// of `to` so many numbers apart: how products read rows that they were not stored for.
template <class Products, class At>
[[gnu::always_inline]] inline void turn(const At& at, StoredBy<Products>* to, std::int64_t row) {
  if constexpr (Products::together == 1) {
    Lanes square[lanes];
    CAROUSEL_UNROLL_ALL
    for (int l = 0; l < lanes; ++l) square[l] = load(at(l));
    transpose(square);
    CAROUSEL_UNROLL_ALL
    for (int c = 0; c < lanes; ++c) store(to + c * row, square[c]);
  } else {
    // A row has half a register of pairs.
    constexpr int half = lanes / 2;
    Words square[half];
    CAROUSEL_UNROLL_ALL
    for (int l = 0; l < half; ++l)
      join(square[l], at(l), at(l + half), std::make_integer_sequence<int, 2 * lanes>());
    transpose(square);
    CAROUSEL_UNROLL_ALL
    for (int c = 0; c < half; ++c) *reinterpret_cast<LoosePairs*>(to + c * row) = square[c];
  }
}

}  // namespace carousel::blocked
