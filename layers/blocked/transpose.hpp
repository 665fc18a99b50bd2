// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "layers/blocked/lanes.hpp"

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

}  // namespace carousel::blocked
