// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Matrix products C = epilogue(A B) of borrowed matrices as one tiled kernel on any backend. It is
// the reference and the fallback; products of vendor libraries are found elsewhere.

#include <limits>
#include <string>

#include "core/base/check.hpp"
#include "core/base/range.hpp"
#include "layers/gemm_tiles.hpp"

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

namespace detail {

/// The part of C that one team computes, in numbers; multiples of the register tile.
struct GemmTile {
  int m;
  int n;
};

/// A tile that fits the caches, cut further until all threads have work of the same size. Cuts
/// change no bits: every sum runs over k alone.
[[nodiscard]] GemmTile host_tile(const GemmShape& shape, int concurrency);

template <class Tiles, class A, class B, class Epilogue>
class GemmKernel {
 public:
  GemmKernel(const GemmShape& shape, const GemmTile& tile, const A& a, const B& b, const Matrix& c,
             const Epilogue& epilogue)
      : shape_(shape),
        tile_(tile),
        a_(a),
        b_(b),
        c_(c),
        epilogue_(epilogue),
        depth_(std::min(Tiles::block_k, shape.k)),
        tiles_n_((shape.n + tile.n - 1) / tile.n) {}

  void launch(const ExecutionSpace& exec, const std::string& label) const {
    const int teams = (shape_.m + tile_.m - 1) / tile_.m * tiles_n_;
    const auto bytes =  // the first block may start behind unaligned memory
        static_cast<int>(block_bytes(tile_.m) + block_bytes(tile_.n)) + alignment;
    TeamPolicy policy(exec, teams, Tiles::threads_m * Tiles::threads_n);
    policy.set_scratch_size(scratch_level, Kokkos::PerTeam(bytes));
    Kokkos::parallel_for(label, policy, *this);
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int m0 = team.league_rank() / tiles_n_ * tile_.m;
    const int n0 = team.league_rank() % tiles_n_ * tile_.n;
    const Part part = {m0, n0, Kokkos::min(tile_.m, shape_.m - m0),
                       Kokkos::min(tile_.n, shape_.n - n0)};
    const auto scratch = team.team_scratch(int{scratch_level});
    const Blocks blocks = {
        static_cast<real*>(scratch.get_shmem_aligned(block_bytes(tile_.m), alignment)),
        static_cast<real*>(scratch.get_shmem_aligned(block_bytes(tile_.n), alignment))};
    if constexpr (Tiles::one_tile_per_thread)
      multiply_in_registers(team, part, blocks);
    else
      multiply_panels(team, part, blocks);
  }

 private:
  static constexpr int scratch_level = runs_on_host ? 1 : 0;
  static constexpr int alignment = 64;

  /// Where the team's tile starts in C, and how much of it exists.
  struct Part {
    int m0;
    int n0;
    int m;
    int n;
  };
  /// The packed blocks of both factors.
  struct Blocks {
    real* a;
    real* b;
  };

  [[nodiscard]] KOKKOS_FUNCTION std::size_t block_bytes(int vectors) const {
    return (sizeof(real) * depth_ * vectors + alignment - 1) / alignment * alignment;
  }

  KOKKOS_FUNCTION void pack_blocks(const Team& team, const Part& part, int k0, int k,
                                   const Blocks& blocks) const {
    constexpr bool by_element = Tiles::one_tile_per_thread;
    pack<Tiles::panel_m, by_element>(team, a_, part.m0, part.m, k0, k, blocks.a);
    pack<Tiles::panel_n, by_element>(team, b_, part.n0, part.n, k0, k, blocks.b);
    team.team_barrier();
  }

  /// Calls visit(sum, its place in C, row of C, column of C) for the sums that exist.
  template <class Visit>
  KOKKOS_FUNCTION void for_each(const Part& part, Accumulators<Tiles>& sums,
                                const Visit& visit) const {
    const int first = part.n0 + sums.first_column();
    if (c_.together(first, Tiles::panel_n)) {
      real* corner = c_.data + c_.offset(part.m0, first) - sums.first_column();
      sums.for_each(part.m, part.n, [&](real& sum, int i, int j) {
        visit(sum, corner[i * c_.row_stride + j], part.m0 + i, part.n0 + j);
      });
    } else {
      sums.for_each(part.m, part.n, [&](real& sum, int i, int j) {
        visit(sum, c_.data[c_.offset(part.m0 + i, part.n0 + j)], part.m0 + i, part.n0 + j);
      });
    }
  }
  KOKKOS_FUNCTION void load(const Part& part, Accumulators<Tiles>& sums) const {
    for_each(part, sums, [](real& sum, const real& c, int, int) { sum = c; });
  }
  KOKKOS_FUNCTION void park(const Part& part, Accumulators<Tiles>& sums) const {
    for_each(part, sums, [](const real& sum, real& c, int, int) { c = sum; });
  }
  KOKKOS_FUNCTION void store(const Part& part, Accumulators<Tiles>& sums) const {
    for_each(part, sums, [&](const real& sum, real& c, int row, int column) {
      c = epilogue_(sum, row, column);
    });
  }

  /// Every thread owns one register tile until all of k is added.
  KOKKOS_FUNCTION void multiply_in_registers(const Team& team, const Part& part,
                                             const Blocks& blocks) const {
    const int row = team.team_rank() / Tiles::threads_n;
    const int column = team.team_rank() % Tiles::threads_n;
    Accumulators<Tiles> sums(row, column);
    if (c_.adds) load(part, sums);
    for (int k0 = 0; k0 < shape_.k; k0 += depth_) {
      const int k = Kokkos::min(depth_, shape_.k - k0);
      pack_blocks(team, part, k0, k, blocks);
      sums.multiply_add(k, blocks.a + row, blocks.b + column);
      team.team_barrier();
    }
    store(part, sums);
  }

  /// The threads share the register tiles of each block of k; between blocks the sums wait in C.
  KOKKOS_FUNCTION void multiply_panels(const Team& team, const Part& part,
                                       const Blocks& blocks) const {
    const int panels_m = (part.m + Tiles::panel_m - 1) / Tiles::panel_m;
    const int panels_n = (part.n + Tiles::panel_n - 1) / Tiles::panel_n;
    for (int k0 = 0; k0 < shape_.k; k0 += depth_) {
      const int k = Kokkos::min(depth_, shape_.k - k0);
      pack_blocks(team, part, k0, k, blocks);
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, panels_m * panels_n), [&](int p) {
        const int i0 = p % panels_m * Tiles::panel_m;
        const int j0 = p / panels_m * Tiles::panel_n;
        Accumulators<Tiles> sums(i0, j0);
        if (k0 > 0 || c_.adds) load(part, sums);
        sums.multiply_add(k, blocks.a + i0 * k, blocks.b + j0 * k);
        if (k0 + k < shape_.k)
          park(part, sums);
        else
          store(part, sums);
      });
      team.team_barrier();
    }
  }

  GemmShape shape_;
  GemmTile tile_;
  A a_;
  B b_;
  Matrix c_;
  Epilogue epilogue_;
  int depth_;    // k of one packed block
  int tiles_n_;  // teams side by side
};

}  // namespace detail

/// C = epilogue(A B) for any m, n, k >= 1, of factors as the kernel sees them; C overlaps neither.
/// Every sum runs over k in ascending order in one accumulator, so that threads, tiles and backends
/// change no bits as long as the compiler contracts multiply and add alike.
template <class A, class B, class Epilogue = StoreSum>
void gemm(const ExecutionSpace& exec, const std::string& label, const GemmShape& shape, const A& a,
          const B& b, const Matrix& c, const Epilogue& epilogue = {}) {
  CAROUSEL_CHECK(shape.m >= 1 && shape.n >= 1 && shape.k >= 1, "m = {}, n = {}, k = {}", shape.m,
                 shape.n, shape.k);
  const auto launch = [&]<class Tiles>(const detail::GemmTile& tile) {
    detail::GemmKernel<Tiles, A, B, Epilogue>(shape, tile, a, b, c, epilogue).launch(exec, label);
  };
  if constexpr (runs_on_host) {
    launch.template operator()<detail::HostTiles>(detail::host_tile(shape, concurrency(exec)));
  } else {
    using Large = detail::DeviceTiles<8>;
    using Small = detail::DeviceTiles<4>;  // so that more multiprocessors have work
    if (static_cast<std::int64_t>(shape.m) * shape.n >= 128 * 128 * 64)
      launch.template operator()<Large>({Large::panel_m, Large::panel_n});
    else
      launch.template operator()<Small>({Small::panel_m, Small::panel_n});
  }
}

/// The product of two plain matrices.
template <class Epilogue = StoreSum>
void gemm(const ExecutionSpace& exec, const std::string& label, const GemmShape& shape,
          const ConstMatrix& a, const ConstMatrix& b, const Matrix& c,
          const Epilogue& epilogue = {}) {
  gemm(exec, label, shape, Vectors{a.data, a.row_stride, a.column_stride},
       Vectors{b.data, b.column_stride, b.row_stride}, c, epilogue);
}

}  // namespace carousel
