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

/// Registers side by side in the product; channels_out / lanes is a multiple of it.
int vectors_of(int channels) {
  return channels / lanes % tile_vectors == 0 ? tile_vectors : 1;
}

std::int64_t pitch(int blocks) {
  return winograd_pitch(blocks * lanes, lanes);
}

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

/// M = V U for the tiles of a task: rows of V are tiles, columns of U channels of the output.
template <int Vectors>
void multiply(int tiles, int blocks_in, int blocks_out, const real* v, const real* u, real* m,
              std::int64_t v_matrix, std::int64_t m_matrix) {
  const int channels = blocks_in * lanes;
  const int parts = segments(tiles, tile_rows);
  const std::int64_t panel = std::int64_t{channels} * lanes;
  const std::int64_t u_matrix = winograd_matrix(panel * blocks_out, lanes);
  for (int k = 0; k < products; ++k, v += v_matrix, u += u_matrix, m += m_matrix) {
    for (int b = 0; b < blocks_out; b += Vectors) {
      for (int p = 0; p < parts; ++p) {
        const Segment rows = segment(tiles, parts, p);
        const real* from = v + rows.first * pitch(blocks_in);
        real* to = m + rows.first * pitch(blocks_out) + b * lanes;
        with_rows<tile_rows>(rows.size, [&](auto count) {
          RegisterTile<count, Vectors> sums;
          sums.clear();
          sums.add_rows(channels, from, pitch(blocks_in), u + b * panel, Vectors * lanes);
          sums.put(to, pitch(blocks_out), lanes);
        });
      }
    }
  }
}

}  // namespace

void transform_weights(const ExecutionSpace& exec, const std::string& label, Direction direction,
                       int channels_in, int channels_out, const real* weights, real* transformed) {
  // Of the product: `from` runs over the sum, `to` over the result.
  const bool forward = direction == Direction::output;
  const int from = forward ? channels_in : channels_out;
  const int to = forward ? channels_out : channels_in;
  const int vectors = vectors_of(to);
  const std::int64_t matrix = winograd_matrix(std::int64_t{from} * to, lanes);
  for_each_task(exec, label, to / lanes * (from / lanes), [=](int task) {
    const int block = task / (from / lanes);
    const int first = task % (from / lanes) * lanes;
    constexpr int taps = WeightBlock::taps;
    WeightBlock weights_here;
    weights_here.fetch(weights +
                           std::int64_t{forward ? block * lanes : first} * channels_in * taps +
                           std::int64_t{forward ? first : block * lanes} * taps,
                       channels_in);
    for (int c = 0; c < lanes; ++c) {
      Lanes half[patch][3];
      CAROUSEL_UNROLL_ALL
      for (int s = 0; s < 3; ++s) {
        Lanes g[3];
        CAROUSEL_UNROLL_ALL
        for (int r = 0; r < 3; ++r) {
          // The gradient of the input meets the taps in the opposite order.
          g[r] = forward ? weights_here.of_input(c, r * 3 + s)
                         : weights_here.of_output(c, 8 - (r * 3 + s));
        }
        Lanes column[patch];
        transform_weight(g, column);
        CAROUSEL_UNROLL_ALL
        for (int i = 0; i < patch; ++i) half[i][s] = column[i];
      }
      real* target = transformed +
                     (std::int64_t{block / vectors} * from + first + c) * vectors * lanes +
                     block % vectors * lanes;
      for (int i = 0; i < patch; ++i) {
        Lanes row[patch];
        transform_weight(half[i], row);
        CAROUSEL_UNROLL_ALL
        for (int j = 0; j < patch; ++j) store(target + (i * patch + j) * matrix, row[j]);
      }
    }
  });
}

template <class Source>
void convolve(const ExecutionSpace& exec, const std::string& label, const Planes<const real>& x,
              const Source& source, const real* weights, const Planes<real>& y, bool adds) {
  const TileGrid grid(x.images, x.h, x.w);
  const int most = tiles_per_task(grid, x.blocks, y.blocks, concurrency(exec));
  const int tasks = segments(grid.size(), most);
  const std::int64_t v_matrix = winograd_matrix(most * pitch(x.blocks), lanes);
  const std::int64_t m_matrix = winograd_matrix(most * pitch(y.blocks), lanes);
  const int vectors = vectors_of(y.blocks * lanes);
  for_each_task(exec, label, tasks, products * (v_matrix + m_matrix), [=](int task, real* scratch) {
    const Segment part = segment(grid.size(), tasks, task);
    real* v = scratch;
    real* m = scratch + products * v_matrix;
    for (int t = 0; t < part.size; ++t) {
      const TilePlace at = grid.place(part.first + t);
      for (int b = 0; b < x.blocks; ++b)
        read_patch(x, source, at, b, v + t * pitch(x.blocks) + b * lanes, v_matrix);
    }
    if (vectors == tile_vectors)
      multiply<tile_vectors>(part.size, x.blocks, y.blocks, v, weights, m, v_matrix, m_matrix);
    else
      multiply<1>(part.size, x.blocks, y.blocks, v, weights, m, v_matrix, m_matrix);
    for (int t = 0; t < part.size; ++t) {
      const TilePlace at = grid.place(part.first + t);
      for (int b = 0; b < y.blocks; ++b)
        write_tile(m + t * pitch(y.blocks) + b * lanes, m_matrix, y, at, b, adds);
    }
  });
}

template void convolve(const ExecutionSpace&, const std::string&, const Planes<const real>&,
                       const Plain&, const real*, const Planes<real>&, bool);
template void convolve(const ExecutionSpace&, const std::string&, const Planes<const real>&,
                       const NormRelu&, const real*, const Planes<real>&, bool);

}  // namespace carousel::blocked::winograd
