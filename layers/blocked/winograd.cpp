// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/winograd.hpp"

#include <algorithm>

#include "core/base/range.hpp"
#include "layers/blocked/register_tile.hpp"
#include "layers/blocked/tasks.hpp"
#include "layers/blocked/weight_block.hpp"
#include "layers/blocked/winograd_tiles.hpp"

namespace carousel::blocked::winograd {
namespace {

/// Tiles that a task transforms at once: their products should stay in the second cache.
int tiles_per_task(const TileGrid& grid, int blocks_in, int blocks_out, int threads) {
  constexpr std::int64_t cache = std::int64_t{1} << 20;
  const std::int64_t bytes =
      products * (pitch(blocks_in) + pitch(blocks_out)) * std::int64_t{sizeof(real)};
  const int fitting = std::max<int>(1, static_cast<int>(cache / bytes) / tile_rows);
  const int groups = std::clamp(fitting, 2, 4);
  const int share = (grid.size() + threads - 1) / threads;  // so that all threads have work
  return std::max(1, std::min(groups * tile_rows, share));
}

/// Blocks of the sum whose weights a task transforms at once, so that they stay in its cache.
int blocks_per_step(int vectors) {
  constexpr std::int64_t cache = std::int64_t{640} << 10;
  return static_cast<int>(
      cache / (std::int64_t{products} * vectors * lanes * lanes * std::int64_t{sizeof(real)}));
}

/// 36 matrices, `matrix` numbers from one to the next and `row` from row to row.
template <class Real>
struct Matrices {
  Real* data;
  std::int64_t matrix;
  std::int64_t row;
};

/// M = or += V U: rows of V are tiles, columns of U are `groups` of Vectors registers, of which one
/// has all its rows before the next one begins.
template <int Vectors>
void multiply(int tiles, int channels, int groups, Matrices<const real> v, Matrices<const real> u,
              Matrices<real> m, bool adds) {
  const int parts = segments(tiles, tile_rows);
  const std::int64_t panel = std::int64_t{channels} * Vectors * lanes;
  for (int k = 0; k < products; ++k, v.data += v.matrix, u.data += u.matrix, m.data += m.matrix) {
    for (int g = 0; g < groups; ++g) {
      for (int p = 0; p < parts; ++p) {
        const Segment rows = segment(tiles, parts, p);
        const real* from = v.data + rows.first * v.row;
        real* to = m.data + rows.first * m.row + g * Vectors * lanes;
        with_rows<tile_rows>(rows.size, [&](auto count) {
          RegisterTile<count, Vectors> sums;
          if (adds)
            sums.fetch(to, m.row, lanes);
          else
            sums.clear();
          sums.add_rows(channels, from, v.row, u.data + g * panel, Vectors * lanes);
          sums.put(to, m.row, lanes);
        });
      }
    }
  }
}

/// G g G^T of the weights between one block of the result and one of the sum: to[k * matrix + c *
/// row] has a register of results for each channel c of the sum.
template <class Stored>
void transform_block(const Weights<Stored>& weights, int result, int sum, real* to,
                     std::int64_t matrix, std::int64_t row) {
  const bool forward = weights.direction == Direction::output;
  constexpr int taps = WeightBlock::taps;
  const int out = forward ? result : sum;
  const int in = forward ? sum : result;
  WeightBlock block;
  block.fetch(weights.data + (std::int64_t{out} * weights.channels_in + in) * lanes * taps,
              weights.channels_in);
  for (int c = 0; c < lanes; ++c, to += row) {
    Lanes half[patch][3];
    CAROUSEL_UNROLL_ALL
    for (int s = 0; s < 3; ++s) {
      Lanes g[3];
      CAROUSEL_UNROLL_ALL
      for (int r = 0; r < 3; ++r) {
        // The gradient of the input meets the taps in the opposite order.
        g[r] = forward ? block.of_input(c, r * 3 + s) : block.of_output(c, 8 - (r * 3 + s));
      }
      Lanes column[patch];
      transform_weight(g, column);
      CAROUSEL_UNROLL_ALL
      for (int i = 0; i < patch; ++i) half[i][s] = column[i];
    }
    for (int i = 0; i < patch; ++i) {
      Lanes numbers[patch];
      transform_weight(half[i], numbers);
      CAROUSEL_UNROLL_ALL
      for (int j = 0; j < patch; ++j) store(to + (i * patch + j) * matrix, numbers[j]);
    }
  }
}

/// All weights are transformed, then threads share the tiles.
template <int Vectors, class Stored, class Source>
void convolve_by_tiles(const ExecutionSpace& exec, const std::string& label,
                       const Weights<Stored>& weights, const Planes<const Stored>& x,
                       const Source& source, const Planes<Stored>& y, bool adds,
                       real* transformed) {
  const std::int64_t row = Vectors * lanes;
  const int channels = x.blocks * lanes;
  const Matrices<real> u = {transformed,
                            winograd_matrix(std::int64_t{channels} * y.blocks * lanes, lanes), row};
  for_each_task(exec, label, y.blocks * x.blocks, [=](int task) {
    const int result = task / x.blocks;
    const int sum = task % x.blocks;
    real* to = u.data + (std::int64_t{result / Vectors} * channels + sum * lanes) * row +
               result % Vectors * lanes;
    transform_block(weights, result, sum, to, u.matrix, row);
  });
  const TileGrid grid(x.images, x.h, x.w);
  const int most = tiles_per_task(grid, x.blocks, y.blocks, concurrency(exec));
  const int tasks = segments(grid.size(), most);
  const std::int64_t v_matrix = winograd_matrix(most * pitch(x.blocks), lanes);
  const std::int64_t m_matrix = winograd_matrix(most * pitch(y.blocks), lanes);
  for_each_task(exec, label, tasks, products * (v_matrix + m_matrix), [=](int task, real* scratch) {
    const Segment part = segment(grid.size(), tasks, task);
    const Matrices<real> v = {scratch, v_matrix, pitch(x.blocks)};
    const Matrices<real> m = {scratch + products * v_matrix, m_matrix, pitch(y.blocks)};
    for (int t = 0; t < part.size; ++t) {
      const TilePlace at = grid.place(part.first + t);
      for (int b = 0; b < x.blocks; ++b)
        read_patch(x, source, at, b, v.data + t * v.row + b * lanes, v.matrix);
    }
    multiply<Vectors>(part.size, channels, y.blocks / Vectors, {v.data, v.matrix, v.row},
                      {u.data, u.matrix, u.row}, m, false);
    for (int t = 0; t < part.size; ++t) {
      const TilePlace at = grid.place(part.first + t);
      for (int b = 0; b < y.blocks; ++b)
        write_tile(m.data + t * m.row + b * lanes, m.matrix, y, at, b, adds);
    }
  });
}

/// All tiles are transformed, then threads share the channels of y: each weight is transformed
/// where it is needed, once, and never seen by a far cache.
template <int Vectors, class Stored, class Source>
void convolve_by_channels(const ExecutionSpace& exec, const std::string& label,
                          const Weights<Stored>& weights, const Planes<const Stored>& x,
                          const Source& source, const Planes<Stored>& y, bool adds,
                          real* transformed) {
  const TileGrid grid(x.images, x.h, x.w);
  const int tiles = grid.size();
  const Matrices<real> v = {transformed, winograd_matrix(tiles * pitch(x.blocks), lanes),
                            pitch(x.blocks)};
  for_each_task(exec, label, tiles, [=](int t) {
    for (int b = 0; b < x.blocks; ++b)
      read_patch(x, source, grid.place(t), b, v.data + t * v.row + b * lanes, v.matrix);
  });
  const int most = std::min(blocks_per_step(Vectors), x.blocks);
  const int steps = segments(x.blocks, most);
  const std::int64_t row = Vectors * lanes;
  const std::int64_t u_matrix = winograd_matrix(most * lanes * row, lanes);
  const std::int64_t m_matrix = winograd_matrix(tiles * row, lanes);
  for_each_task(exec, label, y.blocks / Vectors, products * (u_matrix + m_matrix),
                [=](int group, real* scratch) {
                  const Matrices<real> u = {scratch, u_matrix, row};
                  const Matrices<real> m = {scratch + products * u_matrix, m_matrix, row};
                  for (int s = 0; s < steps; ++s) {
                    const Segment sum = segment(x.blocks, steps, s);
                    for (int b = 0; b < sum.size; ++b) {
                      for (int r = 0; r < Vectors; ++r)
                        transform_block(weights, group * Vectors + r, sum.first + b,
                                        u.data + b * lanes * row + r * lanes, u.matrix, row);
                    }
                    multiply<Vectors>(tiles, sum.size * lanes, 1,
                                      {v.data + sum.first * lanes, v.matrix, v.row},
                                      {u.data, u.matrix, u.row}, m, s > 0);
                  }
                  for (int t = 0; t < tiles; ++t) {
                    for (int r = 0; r < Vectors; ++r)
                      write_tile(m.data + t * row + r * lanes, m.matrix, y, grid.place(t),
                                 group * Vectors + r, adds);
                  }
                });
}

}  // namespace

template <class Stored, class Source>
void convolve(const ExecutionSpace& exec, const std::string& label, const Weights<Stored>& weights,
              const Planes<const Stored>& x, const Source& source, const Planes<Stored>& y,
              bool adds, real* workspace) {
  const int tiles = TileGrid(x.images, x.h, x.w).size();
  const bool few =
      winograd_tiles_are_few(tiles, pitch(x.blocks), x.blocks * lanes, y.blocks * lanes);
  with_vectors(y.blocks, [&](auto vectors) {
    if (few && y.blocks / vectors >= concurrency(exec))
      convolve_by_channels<vectors>(exec, label, weights, x, source, y, adds, workspace);
    else
      convolve_by_tiles<vectors>(exec, label, weights, x, source, y, adds, workspace);
  });
}

template void convolve(const ExecutionSpace&, const std::string&, const Weights<real>&,
                       const Planes<const real>&, const Plain&, const Planes<real>&, bool, real*);
template void convolve(const ExecutionSpace&, const std::string&, const Weights<real>&,
                       const Planes<const real>&, const NormRelu&, const Planes<real>&, bool,
                       real*);
template void convolve(const ExecutionSpace&, const std::string&, const Weights<Bfloat16>&,
                       const Planes<const Bfloat16>&, const Plain&, const Planes<Bfloat16>&, bool,
                       real*);
template void convolve(const ExecutionSpace&, const std::string&, const Weights<Bfloat16>&,
                       const Planes<const Bfloat16>&, const NormRelu&, const Planes<Bfloat16>&,
                       bool, real*);

}  // namespace carousel::blocked::winograd
