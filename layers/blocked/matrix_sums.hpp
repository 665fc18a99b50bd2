// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sums in the matrix registers of Intel's AMX, for the source that runs where processors have them.
// There are eight, each of up to 16 rows of 64 bytes, whose shapes are set together. Compilers do
// not know them: numbers stay there between the statements of a kernel.

#include <algorithm>
#include <cstdint>

#include "layers/blocked/register_tile.hpp"

namespace carousel::blocked {

/// Most rows of a register, and bytes of such a row.
inline constexpr int matrix_rows = 16;
inline constexpr int matrix_bytes = 64;

/// Pairs of bf16 by TDPBF16PS, with the bits of TileProducts.
struct MatrixProducts {
  static constexpr int together = 2;
  static constexpr int apart = TileProducts::apart;
};

/// What LDTILECFG reads.
struct alignas(64) MatrixShapes {
  std::uint8_t palette = 1;
  std::uint8_t start = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t bytes[16] = {};  // of a row, [register]
  std::uint8_t rows[16] = {};

  void set(int matrix, int row_count, int row_bytes) {
    rows[matrix] = static_cast<std::uint8_t>(row_count);
    bytes[matrix] = static_cast<std::uint16_t>(row_bytes);
  }
  /// All registers lose what they have; what was written to memory before can be loaded.
  void apply() const { asm volatile("ldtilecfg %0" : : "m"(*this) : "memory"); }
};

/// Registers that a thread has shaped cost time whenever it is interrupted.
struct MatrixSession {
  MatrixSession() = default;
  MatrixSession(const MatrixSession&) = delete;
  MatrixSession& operator=(const MatrixSession&) = delete;
  ~MatrixSession() { asm volatile("tilerelease"); }
};

/// Rows `stride` bytes apart.
template <int Matrix>
[[gnu::always_inline]] inline void load_matrix(const void* from, std::int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(Matrix));
}
template <int Matrix>
[[gnu::always_inline]] inline void store_matrix(void* to, std::int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(Matrix) : "memory");
}
template <int Matrix>
[[gnu::always_inline]] inline void clear_matrix() {
  asm volatile("tilezero %%tmm%c0" : : "i"(Matrix));
}
template <int Sums, int A, int B>
[[gnu::always_inline]] inline void add_matrix_products() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sums), "i"(A), "i"(B));
}

/// Sums of up to 32 pixels, with the calls of a RegisterTile: matrix 2 half + v has those of half
/// the pixels for register v, matrices 4 and 5 have pixels and 6 and 7 weights.
template <int Vectors>
class MatrixSums {
 public:
  static constexpr int most = 2 * matrix_rows;

  MatrixSums(int rows, int pairs) : rows_{std::min(rows, matrix_rows), rows - matrix_rows} {
    MatrixShapes shapes;
    for (int half = 0; half < halves(); ++half) {
      for (int v = 0; v < Vectors; ++v) shapes.set(2 * half + v, rows_[half], matrix_bytes);
      shapes.set(4 + half, rows_[half], pairs * int{sizeof(std::uint32_t)});
    }
    for (int v = 0; v < Vectors; ++v) shapes.set(6 + v, pairs, matrix_bytes);
    shapes.apply();
  }

  /// New registers are zeros.
  void clear() const {}
  void begin(const real* row) const {
    for_each([&]<int Half, int V>() { load_matrix<2 * Half + V>(row + V * lanes, 0); });
  }
  template <class Stored>
  void fetch(const Stored* from, std::int64_t row, std::int64_t vector) const {
    for_each([&]<int Half, int V>() {
      const Stored* first = from + Half * matrix_rows * row + V * vector;
      if constexpr (std::is_same_v<Stored, real>) {
        load_matrix<2 * Half + V>(first, row * std::int64_t{sizeof(real)});
      } else {
        alignas(64) real full[matrix_rows][lanes];
        for (int r = 0; r < rows_[Half]; ++r) store(full[r], load(first + r * row));
        asm volatile("" : : "r"(full) : "memory");
        load_matrix<2 * Half + V>(full, sizeof(full[0]));
      }
    });
  }
  template <class Stored>
  void put(Stored* to, std::int64_t row, std::int64_t vector) const {
    for_each([&]<int Half, int V>() {
      Stored* first = to + Half * matrix_rows * row + V * vector;
      if constexpr (std::is_same_v<Stored, real>) {
        store_matrix<2 * Half + V>(first, row * std::int64_t{sizeof(real)});
      } else {
        alignas(64) real full[matrix_rows][lanes];
        store_matrix<2 * Half + V>(full, sizeof(full[0]));
        for (int r = 0; r < rows_[Half]; ++r) store(first + r * row, load(full[r]));
      }
    });
  }

  /// As many pairs as the sums were made for, which are at most `apart`.
  template <class Products>
  void add_rows(int /*pairs*/, const Bfloat16* a, std::int64_t a_row, const Bfloat16* b,
                std::int64_t b_step) const {
    constexpr std::int64_t size = sizeof(Bfloat16);
    load_matrix<6>(b, b_step * size);
    load_matrix<4>(a, a_row * size);
    add_matrix_products<0, 4, 6>();
    if constexpr (Vectors == 2) {
      load_matrix<7>(b + Products::together * lanes, b_step * size);
      add_matrix_products<1, 4, 7>();
    }
    if (halves() == 1) return;
    load_matrix<5>(a + matrix_rows * a_row, a_row * size);
    add_matrix_products<2, 5, 6>();
    if constexpr (Vectors == 2) add_matrix_products<3, 5, 7>();
  }

 private:
  static_assert(Vectors <= 2);

  [[nodiscard]] int halves() const { return rows_[1] > 0 ? 2 : 1; }
  template <class Visit>
  void for_each(const Visit& visit) const {
    visit.template operator()<0, 0>();
    if constexpr (Vectors == 2) visit.template operator()<0, 1>();
    if (halves() == 1) return;
    visit.template operator()<1, 0>();
    if constexpr (Vectors == 2) visit.template operator()<1, 1>();
  }

  int rows_[2];
};

template <>
struct SumsOf<MatrixProducts> {
  static constexpr int rows = MatrixSums<1>::most;
  using Session = MatrixSession;

  template <int Vectors, class Function>
  static void with(int count, int pairs, const Function& function) {
    MatrixSums<Vectors> sums(count, pairs);
    function(sums);
  }
};

}  // namespace carousel::blocked
