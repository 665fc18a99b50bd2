// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sums that one thread holds in registers, which all products of the blocked kernels are made
// of. Every sum is one chain of multiply-adds in the order of l, whatever the shape of the tile,
// but for products that are summed apart.

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "layers/blocked/products.hpp"
#include "layers/blocked/segments.hpp"

namespace carousel::blocked {

/// Registers side by side in a tile, where there are as many.
inline constexpr int tile_vectors = 2;
/// Rows of a tile that adds columns, where more would read more than they compute with.
inline constexpr int column_rows = registers == 32 ? 8 : 4;
/// Most rows of a tile: sums, factors and one number take all registers.
inline constexpr int tile_rows = (registers - tile_vectors - 1) / tile_vectors;

/// Rows x Vectors registers of sums of products a(row, l) * b(l, column).
template <int Rows, int Vectors>
struct RegisterTile {
  Lanes sum[Rows][Vectors];

  [[gnu::always_inline]] void clear() {
    CAROUSEL_UNROLL_ALL
    for (int r = 0; r < Rows; ++r) {
      CAROUSEL_UNROLL_ALL
      for (int v = 0; v < Vectors; ++v) sum[r][v] = Lanes{};
    }
  }
  /// All rows begin with the same registers.
  [[gnu::always_inline]] void begin(const real* row) {
    CAROUSEL_UNROLL_ALL
    for (int v = 0; v < Vectors; ++v) {
      const Lanes value = load(row + v * lanes);
      CAROUSEL_UNROLL_ALL
      for (int r = 0; r < Rows; ++r) sum[r][v] = value;
    }
  }
  /// Strides in numbers, between rows and between registers of a row.
  template <class Stored>
  [[gnu::always_inline]] void fetch(const Stored* from, std::int64_t row, std::int64_t vector) {
    CAROUSEL_UNROLL_ALL
    for (int r = 0; r < Rows; ++r) {
      CAROUSEL_UNROLL_ALL
      for (int v = 0; v < Vectors; ++v) sum[r][v] = load(from + r * row + v * vector);
    }
  }
  template <class Stored>
  [[gnu::always_inline]] void put(Stored* to, std::int64_t row, std::int64_t vector) const {
    CAROUSEL_UNROLL_ALL
    for (int r = 0; r < Rows; ++r) {
      CAROUSEL_UNROLL_ALL
      for (int v = 0; v < Vectors; ++v) store(to + r * row + v * vector, sum[r][v]);
    }
  }

  /// Adds the products of k numbers, or pairs of them, with a(r, l) = a[r * a_row + l] and b(l, v)
  /// = b[l * b_step + v * b_vector]. Pairs count as two in strides.
  template <class Products = FullProducts, class B>
  requires(Products::apart == 0)
      [[gnu::always_inline]] void add_rows(int k, const StoredBy<Products>* a, std::int64_t a_row,
                                           const B* b, std::int64_t b_step,
                                           std::int64_t b_vector = Products::together * lanes) {
    // Three rows share a pointer, so that all of them fit the processor's sixteen.
    constexpr int pointers = (Rows + 2) / 3;
    const StoredBy<Products>* at[pointers];
    CAROUSEL_UNROLL_ALL
    for (int p = 0; p < pointers; ++p) at[p] = a + 3 * p * a_row;
    for (int l = 0; l < k; ++l, b += b_step) {
      typename Products::Factor factor[Vectors];
      CAROUSEL_UNROLL_ALL
      for (int v = 0; v < Vectors; ++v) factor[v] = Products::factor(b + v * b_vector);
      CAROUSEL_UNROLL_ALL
      for (int r = 0; r < Rows; ++r) {
        const auto number = Products::shared(at[r / 3] + r % 3 * a_row);
        CAROUSEL_UNROLL_ALL
        for (int v = 0; v < Vectors; ++v) Products::add(sum[r][v], number, factor[v]);
      }
      CAROUSEL_UNROLL_ALL
      for (int p = 0; p < pointers; ++p) at[p] += Products::together;
    }
  }

  /// The same with a(r, l) = a[l * a_step + r].
  template <class Products = FullProducts, class B>
  requires(Products::apart == 0)
      [[gnu::always_inline]] void add_columns(int k, const StoredBy<Products>* a,
                                              std::int64_t a_step, const B* b, std::int64_t b_step,
                                              std::int64_t b_vector) {
    for (int l = 0; l < k; ++l, a += a_step, b += b_step) {
      typename Products::Factor factor[Vectors];
      CAROUSEL_UNROLL_ALL
      for (int v = 0; v < Vectors; ++v) factor[v] = Products::factor(b + v * b_vector);
      CAROUSEL_UNROLL_ALL
      for (int r = 0; r < Rows; ++r) {
        const auto number = Products::shared(a + r * Products::together);
        CAROUSEL_UNROLL_ALL
        for (int v = 0; v < Vectors; ++v) Products::add(sum[r][v], number, factor[v]);
      }
    }
  }

  template <class Products, class B>
  requires(Products::apart > 0) void add_rows(int k, const StoredBy<Products>* a,
                                              std::int64_t a_row, const B* b, std::int64_t b_step,
                                              std::int64_t b_vector = Products::together * lanes) {
    const auto shared = [=](int r, int l) {
      return Products::shared(a + r * a_row + l * Products::together);
    };
    add_apart<Products>(k, shared, b, b_step, b_vector);
  }
  template <class Products, class B>
  requires(Products::apart > 0) void add_columns(int k, const StoredBy<Products>* a,
                                                 std::int64_t a_step, const B* b,
                                                 std::int64_t b_step, std::int64_t b_vector) {
    const auto shared = [=](int r, int l) {
      return Products::shared(a + l * a_step + r * Products::together);
    };
    add_apart<Products>(k, shared, b, b_step, b_vector);
  }

 private:
  /// Likewise with a(r, l) = shared(r, l).
  template <class Products, class SharedAt, class B>
  void add_apart(int k, const SharedAt& shared, const B* b, std::int64_t b_step,
                 std::int64_t b_vector) {
    for (int first = 0; first < k; first += Products::apart) {
      const int end = std::min(k, first + Products::apart);
      for (int r = 0; r < Rows; ++r) {
        for (int v = 0; v < Vectors; ++v) {
          typename Products::Factor sums = {};
          for (int l = first; l < end; ++l)
            Products::add(sums, shared(r, l), Products::factor(b + l * b_step + v * b_vector));
          sum[r][v] += sums.first + sums.second;
        }
      }
    }
  }
};

/// Calls function(std::integral_constant<int, rows>) for 1 <= rows <= Most.
template <int Most, class Function>
[[gnu::always_inline]] inline void with_rows(int rows, const Function& function) {
  const auto call = [&]<int... R>(std::integer_sequence<int, R...>) {
    static_cast<void>(
        ((rows == R + 1 && (function(std::integral_constant<int, R + 1>()), true)) || ...));
  };
  call(std::make_integer_sequence<int, Most>());
}

/// The sums that a kind of products is added to: of so many pixels at once.
template <class Products>
struct SumsOf {
  static constexpr int rows = tile_rows;

  /// What a task needs as long as it adds.
  struct Session {};
  /// Calls function(sums) with sums of 1 <= count <= rows pixels, to which `k` numbers, or pairs,
  /// are added at a time.
  template <int Vectors, class Function>
  [[gnu::always_inline]] static void with(int count, int /*k*/, const Function& function) {
    with_rows<rows>(count, [&](auto constant) {
      RegisterTile<constant, Vectors> sums;
      function(sums);
    });
  }
};

/// Registers side by side in the products with so many blocks, which are a multiple of them.
[[nodiscard]] constexpr int vectors_of(int blocks) {
  return blocks % tile_vectors == 0 ? tile_vectors : 1;
}
/// Calls function(std::integral_constant<int, vectors_of(blocks)>).
template <class Function>
void with_vectors(int blocks, const Function& function) {
  if (vectors_of(blocks) == tile_vectors)
    function(std::integral_constant<int, tile_vectors>());
  else
    function(std::integral_constant<int, 1>());
}

}  // namespace carousel::blocked
