// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sums over the rows of a matrix, as gradients of biases are.

#include "core/base/range.hpp"
#include "layers/stored.hpp"

namespace carousel {

/// sums[j] = sum over i, in ascending order, of rows[i][j], for n rows of `columns`.
template <class Stored>
void sum_rows(const ExecutionSpace& exec, int n, int columns, const Stored* rows, real* sums) {
  static const std::string label = "carousel::layers::sum_rows";
  constexpr int width = runs_on_host ? 16 : 1;  // neighbouring columns fill vector registers
  Kokkos::parallel_for(
      label, range(exec, (columns + width - 1) / width), KOKKOS_LAMBDA(int chunk) {
        const int first = chunk * width;
        const int here = Kokkos::min(width, columns - first);
        real sum[width] = {};
        for (int i = 0; i < n; ++i) {
          const Stored* row = rows + static_cast<std::int64_t>(i) * columns + first;
          for (int j = 0; j < here; ++j) sum[j] += full(row[j]);
        }
        for (int j = 0; j < here; ++j) sums[first + j] = sum[j];
      });
}

}  // namespace carousel
