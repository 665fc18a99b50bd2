// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inside of layers/gemm.hpp: what one team does for its tile of a product, by packing blocks of
// both factors into scratch memory and multiplying in registers. Nobody but the kernel includes it.

#include <cstddef>
#include <cstdint>

#include "core/base/view.hpp"

// Sums stay in registers only when the loops over a register tile are unrolled at compile time.
#if defined(__CUDA_ARCH__)
#define CAROUSEL_UNROLL _Pragma("unroll")
#elif defined(__CUDACC__)
#define CAROUSEL_UNROLL  // the host's half of a kernel that never runs there
#else
#define CAROUSEL_UNROLL _Pragma("GCC unroll 16")
#endif

namespace carousel::detail {

// Left to itself, gcc 12 shuffles and spills the sums at a third of the speed; so the numbers of a
// vector register are one value of the vector extension that gcc and clang share.
#if defined(__CUDACC__)
using Lanes = real;
#elif defined(__AVX512F__)
using Lanes = real __attribute__((vector_size(64)));
#elif defined(__AVX__)
using Lanes = real __attribute__((vector_size(32)));
#else
using Lanes = real __attribute__((vector_size(16)));
#endif

/// Many register tiles per thread, one after the other, each from a panel of its own; partial sums
/// of a block wait in C. The sizes follow BLIS (Van Zee & van de Geijn 2015): a panel of B stays in
/// the first cache, the block of A in the second.
struct HostTiles {
  using Lane = Lanes;
  static constexpr int lane_size = static_cast<int>(sizeof(Lane) / sizeof(real));
  static constexpr int micro_m = 6;
  static constexpr int micro_n = 2;    // in lanes
  static constexpr int threads_m = 1;  // threads that share a panel, taking rows in turn
  static constexpr int threads_n = 1;
  static constexpr int panel_m = micro_m;
  static constexpr int panel_n = micro_n * lane_size;
  static constexpr int block_k = 1024 / static_cast<int>(sizeof(real));
  static constexpr bool one_tile_per_thread = false;
};

/// One register tile per thread, which stays there over all of k. Rows and columns of neighbouring
/// threads alternate, so that shared memory is read without bank conflicts and C is written
/// coalesced.
template <int Micro, int Threads = 16>
struct DeviceTiles {
  using Lane = real;
  static constexpr int lane_size = 1;
  static constexpr int micro_m = Micro;
  static constexpr int micro_n = Micro;
  static constexpr int threads_m = Threads;
  static constexpr int threads_n = Threads;
  static constexpr int panel_m = Micro * Threads;
  static constexpr int panel_n = Micro * Threads;
  static constexpr int block_k = 16;
  static constexpr bool one_tile_per_thread = true;
};

/// Copies k numbers, from k0 on, of `count` vectors, from v0 on, into panels[p][k][Width]; the rest
/// of the last panel is filled with zeros. All threads of the team take part.
template <int Width, bool ByElement, class Factor>
KOKKOS_FUNCTION void pack(const Team& team, const Factor& from, int v0, int count, int k0, int k,
                          real* to) {
  if constexpr (ByElement) {  // the loop order follows the memory, so that reads are coalesced
    const bool vectors_first = from.vectors_first();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, k * Width), [&](int e) {
      const int v = vectors_first ? e % Width : e / k;
      const int l = vectors_first ? e / Width : e % k;
      to[l * Width + v] = v < count ? from.element(v0 + v, k0 + l) : real(0);
    });
  } else {
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, (count + Width - 1) / Width), [&](int p) {
      real* panel = to + static_cast<std::ptrdiff_t>(p) * Width * k;
      const int here = Kokkos::min(Width, count - p * Width);
      from.template pack_panel<Width>(v0 + p * Width, here, k0, k, panel);
      if (here == Width) return;
      for (int l = 0; l < k; ++l) {
        for (int v = here; v < Width; ++v) panel[l * Width + v] = 0;
      }
    });
  }
}

/// The sums of one register tile. `first` is the row (column) of its first sum; the others follow
/// in steps of the number of threads that share the panel.
template <class Tiles>
class Accumulators {
 public:
  KOKKOS_FUNCTION Accumulators(int first_row, int first_column)
      : first_row_(first_row), first_column_(first_column) {}

  [[nodiscard]] KOKKOS_FUNCTION int first_row() const { return first_row_; }
  [[nodiscard]] KOKKOS_FUNCTION int first_column() const { return first_column_; }

  /// Adds k products to every sum, one after the other: bits depend on nothing but k's order.
  KOKKOS_FUNCTION void multiply_add(int k, const real* a, const real* b) {
    for (int l = 0; l < k; ++l, a += Tiles::panel_m, b += Tiles::panel_n) {
      const auto* lanes = reinterpret_cast<const Lane*>(b);
      CAROUSEL_UNROLL
      for (int r = 0; r < Tiles::micro_m; ++r) {
        const real factor = a[r * Tiles::threads_m];
        CAROUSEL_UNROLL
        for (int s = 0; s < Tiles::micro_n; ++s)
          add_product(sum_[r][s], factor, lanes[s * Tiles::threads_n]);
      }
    }
  }

  /// Calls visit(number, row, column) for the sums inside of `rows` and `columns`; it may read and
  /// write them.
  template <class Visit>
  KOKKOS_FUNCTION void for_each(int rows, int columns, const Visit& visit) {
    constexpr int width = Tiles::micro_n * Tiles::lane_size;
    const bool inside = first_row_ + (Tiles::micro_m - 1) * Tiles::threads_m < rows &&
                        first_column_ + (width - 1) * Tiles::threads_n < columns;
    CAROUSEL_UNROLL
    for (int r = 0; r < Tiles::micro_m; ++r) {
      Lane line[Tiles::micro_n];  // so that the sums themselves are never addressed
      for (int s = 0; s < Tiles::micro_n; ++s) line[s] = sum_[r][s];
      auto* numbers = reinterpret_cast<real*>(line);
      const int row = first_row_ + r * Tiles::threads_m;
      CAROUSEL_UNROLL
      for (int s = 0; s < width; ++s) {
        const int column = first_column_ + s * Tiles::threads_n;
        if (inside || (row < rows && column < columns)) visit(numbers[s], row, column);
      }
      for (int s = 0; s < Tiles::micro_n; ++s) sum_[r][s] = line[s];
    }
  }

 private:
  using Lane = typename Tiles::Lane;

  /// Rounds once where the processor can. Compilers fuse products and sums of vectors, but not of
  /// every loop of scalars, and bits must not depend on that.
  KOKKOS_FUNCTION static void add_product(Lane& sum, real factor, const Lane& lane) {
#if defined(__CUDA_ARCH__) || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    if constexpr (Tiles::lane_size == 1)
      sum = Kokkos::fma(factor, lane, sum);
    else
#endif
      sum += factor * lane;
  }

  int first_row_;
  int first_column_;
  Lane sum_[Tiles::micro_m][Tiles::micro_n] = {};
};

}  // namespace carousel::detail
