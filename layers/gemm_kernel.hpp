// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernel of layers/gemm.hpp: how teams divide C among them and where their sums wait between
// two blocks of k. What a team does with a block is in gemm_tiles.hpp. Only gemm.hpp includes it.

#include <string>

#include "core/base/range.hpp"
#include "layers/gemm_operands.hpp"
#include "layers/gemm_tiles.hpp"

namespace carousel::detail {

/// The part of C that one team computes, in numbers; multiples of the register tile.
struct GemmTile {
  int m;
  int n;
};

/// A tile that fits the caches, cut further until all threads have work of the same size. Cuts
/// change no bits: every sum runs over k alone.
[[nodiscard]] GemmTile host_tile(const GemmShape& shape, int concurrency);

/// Where the team's tile starts in C, and how much of it exists.
struct Part {
  int m0;
  int n0;
  int m;
  int n;
};

/// Where the sums of a register tile are in memory: in C itself or, if a host's columns lie in
/// several blocks, in a copy that is fetched before and delivered afterwards.
template <class Tiles>
class Landing {
 public:
  KOKKOS_FUNCTION Landing(const Matrix& c, const Part& part, const Accumulators<Tiles>& sums)
      : c_(c),
        part_(part),
        row_(sums.first_row()),
        column_(sums.first_column()),
        copies_(!Tiles::one_tile_per_thread && !c.together(part.n0 + column_, width)),
        corner_(copies_ ? copy_ : c.data + c.offset(part.m0 + row_, part.n0 + column_)),
        stride_(copies_ ? width : c.row_stride) {}

  [[nodiscard]] KOKKOS_FUNCTION real& at(int i, int j) {
    if constexpr (Tiles::one_tile_per_thread)  // once per sum, a division is nothing beside all of
                                               // k
      return c_.data[c_.offset(part_.m0 + i, part_.n0 + j)];
    else
      return corner_[(i - row_) * stride_ + (j - column_)];
  }
  KOKKOS_FUNCTION void fetch() {
    if (copies_) for_each([](real& copy, const real& c) { copy = c; });
  }
  KOKKOS_FUNCTION void deliver() {
    if (copies_) for_each([](const real& copy, real& c) { c = copy; });
  }

 private:
  static constexpr int height = Tiles::one_tile_per_thread ? 1 : Tiles::panel_m;
  static constexpr int width = Tiles::one_tile_per_thread ? 1 : Tiles::panel_n;

  template <class Visit>
  KOKKOS_FUNCTION void for_each(const Visit& visit) {
    for (int i = row_; i < Kokkos::min(row_ + height, part_.m); ++i) {
      for (int j = column_; j < Kokkos::min(column_ + width, part_.n); ++j)
        visit(at(i, j), c_.data[c_.offset(part_.m0 + i, part_.n0 + j)]);
    }
  }

  const Matrix& c_;
  const Part& part_;
  int row_;
  int column_;
  bool copies_;
  real copy_[height * width];
  real* corner_;
  std::int64_t stride_;
};

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

  KOKKOS_FUNCTION void load(const Part& part, Accumulators<Tiles>& sums) const {
    Landing<Tiles> landing(c_, part, sums);
    landing.fetch();
    sums.for_each(part.m, part.n, [&](real& sum, int i, int j) { sum = landing.at(i, j); });
  }
  KOKKOS_FUNCTION void park(const Part& part, Accumulators<Tiles>& sums) const {
    Landing<Tiles> landing(c_, part, sums);
    sums.for_each(part.m, part.n, [&](real& sum, int i, int j) { landing.at(i, j) = sum; });
    landing.deliver();
  }
  KOKKOS_FUNCTION void store(const Part& part, Accumulators<Tiles>& sums) const {
    Landing<Tiles> landing(c_, part, sums);
    sums.for_each(part.m, part.n, [&](real& sum, int i, int j) {
      landing.at(i, j) = epilogue_(sum, part.m0 + i, part.n0 + j);
    });
    landing.deliver();
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

}  // namespace carousel::detail
