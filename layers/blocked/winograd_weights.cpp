// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/winograd_weights.hpp"

#include <algorithm>

#include "layers/blocked/register_tile.hpp"
#include "layers/blocked/tasks.hpp"
#include "layers/blocked/weight_block.hpp"
#include "layers/blocked/winograd_tiles.hpp"

namespace carousel::blocked::winograd {
namespace {

/// Channels of the input that meet a register of gradients at once; they divide a block.
constexpr int channel_rows = std::min(column_rows, lanes);
/// Blocks of input and of output whose sums of products a task makes, so that they fit its cache.
constexpr int group_blocks = 4;

/// Rows of numbers, `row` from one to the next.
template <class Real>
struct Rows {
  Real* data;
  std::int64_t row;
};

/// sum[c][k] = or += the sum over tiles of v[tile][c] w[tile][k], for some blocks of c and of k.
template <int Vectors>
void add_products(int tiles, const Rows<const real>& v, int blocks_in, const Rows<const real>& w,
                  int blocks_out, bool is_first, const Rows<real>& sum) {
  for (int k = 0; k < blocks_out * lanes; k += Vectors * lanes) {
    for (int c = 0; c < blocks_in * lanes; c += channel_rows) {
      real* to = sum.data + c * sum.row + k;
      RegisterTile<channel_rows, Vectors> tile;
      if (is_first)
        tile.clear();
      else
        tile.fetch(to, sum.row, lanes);
      tile.add_columns(tiles, v.data + c, v.row, w.data + k, w.row, lanes);
      tile.put(to, sum.row, lanes);
    }
  }
}

/// d_g = G^T sum G, for one block of the output and one of the input.
void put_gradients(const Rows<const real>& sum, std::int64_t matrix, int channels_in,
                   real* d_weights) {
  WeightBlock gradients;
  for (int c = 0; c < lanes; ++c) {
    Lanes half[3][patch];
    CAROUSEL_UNROLL_ALL
    for (int j = 0; j < patch; ++j) {
      Lanes u[patch];
      CAROUSEL_UNROLL_ALL
      for (int i = 0; i < patch; ++i)
        u[i] = load(sum.data + c * sum.row + (i * patch + j) * matrix);
      Lanes column[3];
      transform_d_weight(u, column);
      CAROUSEL_UNROLL_ALL
      for (int r = 0; r < 3; ++r) half[r][j] = column[r];
    }
    for (int r = 0; r < 3; ++r) {
      Lanes row_of_taps[3];
      transform_d_weight(half[r], row_of_taps);
      for (int s = 0; s < 3; ++s) gradients.set_of_input(c, r * 3 + s, row_of_taps[s]);
    }
  }
  gradients.put(d_weights, channels_in);
}

/// Where the gradients between one block of the output and one of the input begin.
real* block_of(real* d_weights, int out, int in, int blocks_in) {
  return d_weights + (std::int64_t{out} * lanes * blocks_in + in) * lanes * WeightBlock::taps;
}

/// Adds the sums of all other chunks, in order, to those of the first one.
void sum_chunks(const ExecutionSpace& exec, const std::string& label, int blocks_in, int blocks_out,
                int chunks, real* sums) {
  const std::int64_t size = std::int64_t{blocks_out} * lanes * lanes;
  const std::int64_t matrix = winograd_matrix(blocks_in * size, lanes);
  for_each_task(exec, label, products * blocks_in, [=](int task) {
    real* to = sums + task / blocks_in * matrix + task % blocks_in * size;
    for (int k = 1; k < chunks; ++k) {
      const real* from = to + k * products * matrix;
      for (std::int64_t i = 0; i < size; i += lanes) store(to + i, load(to + i) + load(from + i));
    }
  });
}

/// Of the sums of all channels.
void put_all_gradients(const ExecutionSpace& exec, const std::string& label, int blocks_in,
                       int blocks_out, const real* sums, real* d_weights) {
  const std::int64_t row = std::int64_t{blocks_out} * lanes;
  const std::int64_t matrix = winograd_matrix(blocks_in * lanes * row, lanes);
  for_each_task(exec, label, blocks_in * blocks_out, [=](int task) {
    const int out = task / blocks_in;
    const int in = task % blocks_in;
    put_gradients({sums + in * lanes * row + out * lanes, row}, matrix, blocks_in * lanes,
                  block_of(d_weights, out, in, blocks_in));
  });
}

/// Few channels and many tiles: a task has the sums of all of them for a chunk of the tiles, of
/// which it transforms a few at a time, so that nothing leaves the second cache.
template <int Vectors, class Stored, class Source>
void add_chunks(const ExecutionSpace& exec, const std::string& label, const Planes<const Stored>& x,
                const Source& source, const Planes<const Stored>& d_y, real* workspace,
                real* d_weights) {
  const TileGrid grid(x.images, x.h, x.w);
  const int chunks = winograd_chunks(grid.size(), x.blocks * lanes, d_y.blocks * lanes);
  const int most = winograd_tiles_in_cache(x.blocks * lanes, d_y.blocks * lanes);
  const std::int64_t v_row = std::int64_t{x.blocks} * lanes;
  const std::int64_t w_row = std::int64_t{d_y.blocks} * lanes;
  const std::int64_t v_matrix = winograd_matrix(most * v_row, lanes);
  const std::int64_t w_matrix = winograd_matrix(most * w_row, lanes);
  const std::int64_t matrix = winograd_matrix(v_row * w_row, lanes);
  for_each_task(exec, label, chunks, products * (v_matrix + w_matrix),
                [=](int task, real* scratch) {
                  const Segment chunk = segment(grid.size(), chunks, task);
                  const int parts = segments(chunk.size, most);
                  real* v = scratch;
                  real* w = v + products * v_matrix;
                  real* sum = workspace + task * products * matrix;
                  for (int p = 0; p < parts; ++p) {
                    const Segment part = segment(chunk.size, parts, p);
                    for (int t = 0; t < part.size; ++t) {
                      const TilePlace at = grid.place(chunk.first + part.first + t);
                      for (int b = 0; b < x.blocks; ++b)
                        read_patch(x, source, at, b, v + t * v_row + b * lanes, v_matrix);
                      for (int b = 0; b < d_y.blocks; ++b)
                        read_gradient(d_y, at, b, w + t * w_row + b * lanes, w_matrix);
                    }
                    for (int k = 0; k < products; ++k) {
                      add_products<Vectors>(part.size, {v + k * v_matrix, v_row}, x.blocks,
                                            {w + k * w_matrix, w_row}, d_y.blocks, p == 0,
                                            {sum + k * matrix, w_row});
                    }
                  }
                });
  sum_chunks(exec, label, x.blocks, d_y.blocks, chunks, workspace);
  put_all_gradients(exec, label, x.blocks, d_y.blocks, workspace, d_weights);
}

/// Otherwise as many tiles as a far cache holds are transformed for all. If they are all, and there
/// are enough channels for several tasks, each makes the sums of some channels and their gradients,
/// so that no sum leaves its cache.
template <int Vectors, class Stored, class Source>
void add_parts(const ExecutionSpace& exec, const std::string& label, const Planes<const Stored>& x,
               const Source& source, const Planes<const Stored>& d_y, real* workspace,
               real* d_weights) {
  const TileGrid grid(x.images, x.h, x.w);
  const int most = winograd_tiles_at_once(grid.size(), x.blocks * lanes, d_y.blocks * lanes, lanes);
  const std::int64_t v_row = pitch(x.blocks);
  const std::int64_t w_row = pitch(d_y.blocks);
  const std::int64_t v_matrix = winograd_matrix(most * v_row, lanes);
  const std::int64_t w_matrix = winograd_matrix(most * w_row, lanes);
  real* v = workspace;
  real* w = v + products * v_matrix;
  const auto transform = [&](const Segment& part) {
    for_each_task(exec, label, part.size, [=](int t) {
      const TilePlace at = grid.place(part.first + t);
      for (int b = 0; b < x.blocks; ++b)
        read_patch(x, source, at, b, v + t * v_row + b * lanes, v_matrix);
      for (int b = 0; b < d_y.blocks; ++b)
        read_gradient(d_y, at, b, w + t * w_row + b * lanes, w_matrix);
    });
  };
  const int parts = segments(grid.size(), most);
  const int groups_in = segments(x.blocks, group_blocks);
  const int groups_out = segments(d_y.blocks, group_blocks);
  if (parts == 1 && groups_in * groups_out > 1) {
    transform({0, grid.size()});
    constexpr std::int64_t row = group_blocks * lanes;
    constexpr std::int64_t matrix = winograd_matrix(row * row, lanes);
    for_each_task(
        exec, label, groups_in * groups_out, products * matrix, [=](int task, real* sums) {
          const int in = task % groups_in * group_blocks;
          const int out = task / groups_in * group_blocks;
          const int size_in = std::min(group_blocks, x.blocks - in);
          const int size_out = std::min(group_blocks, d_y.blocks - out);
          for (int k = 0; k < products; ++k)
            add_products<Vectors>(grid.size(), {v + k * v_matrix + in * lanes, v_row}, size_in,
                                  {w + k * w_matrix + out * lanes, w_row}, size_out, true,
                                  {sums + k * matrix, row});
          for (int o = 0; o < size_out; ++o) {
            for (int i = 0; i < size_in; ++i)
              put_gradients({sums + i * lanes * row + o * lanes, row}, matrix, x.blocks * lanes,
                            block_of(d_weights, out + o, in + i, x.blocks));
          }
        });
    return;
  }
  real* sums = w + products * w_matrix;
  const std::int64_t row = std::int64_t{d_y.blocks} * lanes;
  const std::int64_t matrix = winograd_matrix(x.blocks * lanes * row, lanes);
  for (int p = 0; p < parts; ++p) {
    const Segment part = segment(grid.size(), parts, p);
    transform(part);
    for_each_task(exec, label, products * x.blocks, [=](int task) {
      const int k = task / x.blocks;
      const int in = task % x.blocks;
      add_products<Vectors>(part.size, {v + k * v_matrix + in * lanes, v_row}, 1,
                            {w + k * w_matrix, w_row}, d_y.blocks, p == 0,
                            {sums + k * matrix + in * lanes * row, row});
    });
  }
  put_all_gradients(exec, label, x.blocks, d_y.blocks, sums, d_weights);
}

}  // namespace

template <class Stored, class Source>
void weight_gradient(const ExecutionSpace& exec, const std::string& label,
                     const Planes<const Stored>& x, const Source& source,
                     const Planes<const Stored>& d_y, real* workspace, real* d_weights) {
  with_vectors(d_y.blocks, [&](auto vectors) {
    const int tiles = TileGrid(x.images, x.h, x.w).size();
    if (winograd_sums_in_chunks(tiles, x.blocks * lanes, d_y.blocks * lanes, lanes))
      add_chunks<vectors>(exec, label, x, source, d_y, workspace, d_weights);
    else
      add_parts<vectors>(exec, label, x, source, d_y, workspace, d_weights);
  });
}

template void weight_gradient(const ExecutionSpace&, const std::string&, const Planes<const real>&,
                              const Plain&, const Planes<const real>&, real*, real*);
template void weight_gradient(const ExecutionSpace&, const std::string&, const Planes<const real>&,
                              const NormRelu&, const Planes<const real>&, real*, real*);
template void weight_gradient(const ExecutionSpace&, const std::string&,
                              const Planes<const Bfloat16>&, const Plain&,
                              const Planes<const Bfloat16>&, real*, real*);
template void weight_gradient(const ExecutionSpace&, const std::string&,
                              const Planes<const Bfloat16>&, const NormRelu&,
                              const Planes<const Bfloat16>&, real*, real*);

}  // namespace carousel::blocked::winograd
