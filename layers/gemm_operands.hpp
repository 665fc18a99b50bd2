// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a matrix product works with: borrowed factors, the borrowed product, and what is done to a
// finished sum. Nothing here computes; that is layers/gemm.hpp.

#include <cstdint>
#include <limits>

#include "core/base/view.hpp"

namespace carousel {

/// A borrowed factor: element (i, j) is data[i * row_stride + j * column_stride], so that a
/// transpose is the same memory with the strides exchanged.
struct ConstMatrix {
  const real* data;
  std::int64_t row_stride;
  std::int64_t column_stride;

  [[nodiscard]] ConstMatrix transposed() const { return {data, column_stride, row_stride}; }
};

/// Rows of A, or columns of B, as the kernel sees a factor: vectors of k numbers. Their numbers may
/// come in segments, such as the images of a micro-batch. Any type with these functions is a
/// factor.
struct Vectors {
  const real* data;
  std::int64_t vector_stride;
  std::int64_t k_stride;
  int segment = std::numeric_limits<int>::max();  // numbers of one segment
  std::int64_t segment_stride = 0;

  [[nodiscard]] KOKKOS_FUNCTION real element(int v, int k) const {
    return data[v * vector_stride + k / segment * segment_stride + k % segment * k_stride];
  }
  /// Whether neighbouring vectors, not neighbours in k, are neighbours in memory.
  [[nodiscard]] KOKKOS_FUNCTION bool vectors_first() const { return vector_stride == 1; }

  /// panel[l][v] = element(v0 + v, k0 + l) for v < count.
  template <int Width>
  KOKKOS_FUNCTION void pack_panel(int v0, int count, int k0, int k, real* panel) const {
    for (int l = 0; l < k;) {
      const int within = (k0 + l) % segment;
      const int end = Kokkos::min(k, l + segment - within);
      const real* source =
          data + v0 * vector_stride + (k0 + l) / segment * segment_stride + within * k_stride;
      if (vector_stride == 1 && count == Width) {
        for (int at = l; at < end; ++at, source += k_stride)
          for (int v = 0; v < Width; ++v) panel[at * Width + v] = source[v];
      } else {
        for (int v = 0; v < count; ++v, source += vector_stride)
          for (int at = l; at < end; ++at) panel[at * Width + v] = source[(at - l) * k_stride];
      }
      l = end;
    }
  }
};

/// A borrowed product. Its columns may lie in blocks of consecutive numbers.
struct Matrix {
  real* data;
  std::int64_t row_stride;
  bool adds = false;                            // the sums go on from what is there
  int block = std::numeric_limits<int>::max();  // columns of one block
  std::int64_t block_stride = 0;

  [[nodiscard]] KOKKOS_FUNCTION std::int64_t offset(int row, int column) const {
    return row * row_stride + column / block * block_stride + column % block;
  }
  /// Whether columns column ... column + count - 1 are neighbours in memory.
  [[nodiscard]] KOKKOS_FUNCTION bool together(int column, int count) const {
    return column % block <= block - count;
  }
};

/// m rows and n columns of C, sums of k products.
struct GemmShape {
  int m;
  int n;
  int k;
};

/// Epilogues see every finished sum once, before it is stored: value of (row, column).
struct StoreSum {
  KOKKOS_FUNCTION real operator()(real sum, int /*row*/, int /*column*/) const { return sum; }
};
struct AddToColumns {
  const real* bias;  // [n]
  KOKKOS_FUNCTION real operator()(real sum, int /*row*/, int column) const {
    return sum + bias[column];
  }
};
struct AddToRows {
  const real* bias;  // [m]
  KOKKOS_FUNCTION real operator()(real sum, int row, int /*column*/) const {
    return sum + bias[row];
  }
};

}  // namespace carousel
