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
constexpr int channel_rows = registers == 32 ? 8 : 4;

std::int64_t pitch(int blocks) {
  return winograd_pitch(blocks * lanes, lanes);
}

/// sum[c][k] += the sum over tiles of v[tile][c] w[tile][k], for one block of c and all k.
template <int Vectors>
void add_products(int tiles, const real* v, std::int64_t v_row, const real* w, int blocks_out,
                  bool is_first, real* sum) {
  const std::int64_t row = std::int64_t{blocks_out} * lanes;
  for (int k = 0; k < blocks_out; k += Vectors) {
    for (int c = 0; c < lanes; c += channel_rows) {
      real* to = sum + c * row + k * lanes;
      RegisterTile<std::min(channel_rows, lanes), Vectors> sums;
      if (is_first)
        sums.clear();
      else
        sums.fetch(to, row, lanes);
      sums.add_columns(tiles, v + c, v_row, w + k * lanes, pitch(blocks_out), lanes);
      sums.put(to, row, lanes);
    }
  }
}

/// d_g = G^T sum G, for one block of the output and one of the input.
void put_gradients(const real* sum, std::int64_t matrix, std::int64_t row, int channels_in,
                   real* d_weights) {
  WeightBlock gradients;
  for (int c = 0; c < lanes; ++c, sum += row) {
    Lanes half[3][patch];
    CAROUSEL_UNROLL_ALL
    for (int j = 0; j < patch; ++j) {
      Lanes u[patch];
      CAROUSEL_UNROLL_ALL
      for (int i = 0; i < patch; ++i) u[i] = load(sum + (i * patch + j) * matrix);
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

}  // namespace

template <class Source>
void weight_gradient(const ExecutionSpace& exec, const std::string& label,
                     const Planes<const real>& x, const Source& source,
                     const Planes<const real>& d_y, real* workspace, real* d_weights) {
  const TileGrid grid(x.images, x.h, x.w);
  const int most = winograd_tiles_at_once(grid.size(), x.blocks * lanes, d_y.blocks * lanes, lanes);
  const std::int64_t v_matrix = winograd_matrix(most * pitch(x.blocks), lanes);
  const std::int64_t w_matrix = winograd_matrix(most * pitch(d_y.blocks), lanes);
  real* v = workspace;
  real* w = v + products * v_matrix;
  real* sum = w + products * w_matrix;
  const std::int64_t row = std::int64_t{d_y.blocks} * lanes;
  const std::int64_t matrix = winograd_matrix(x.blocks * lanes * row, lanes);
  const int parts = segments(grid.size(), most);
  for (int p = 0; p < parts; ++p) {
    const Segment part = segment(grid.size(), parts, p);
    for_each_task(exec, label, part.size, [=](int t) {
      const TilePlace at = grid.place(part.first + t);
      for (int b = 0; b < x.blocks; ++b)
        read_patch(x, source, at, b, v + t * pitch(x.blocks) + b * lanes, v_matrix);
      for (int b = 0; b < d_y.blocks; ++b)
        read_gradient(d_y, at, b, w + t * pitch(d_y.blocks) + b * lanes, w_matrix);
    });
    for_each_task(exec, label, products * x.blocks, [=](int task) {
      const int k = task / x.blocks;
      const int b = task % x.blocks;
      const real* from = v + k * v_matrix + b * lanes;
      real* to = sum + k * matrix + b * lanes * row;
      if (d_y.blocks % tile_vectors == 0)
        add_products<tile_vectors>(part.size, from, pitch(x.blocks), w + k * w_matrix, d_y.blocks,
                                   p == 0, to);
      else
        add_products<1>(part.size, from, pitch(x.blocks), w + k * w_matrix, d_y.blocks, p == 0, to);
    });
  }
  for_each_task(exec, label, x.blocks * d_y.blocks, [=](int task) {
    const int out = task / x.blocks;
    const int in = task % x.blocks;
    put_gradients(sum + in * lanes * row + out * lanes, matrix, row, x.blocks * lanes,
                  d_weights + (std::int64_t{out} * lanes * x.blocks + in) * lanes * 9);
  });
}

template void weight_gradient(const ExecutionSpace&, const std::string&, const Planes<const real>&,
                              const Plain&, const Planes<const real>&, real*, real*);
template void weight_gradient(const ExecutionSpace&, const std::string&, const Planes<const real>&,
                              const NormRelu&, const Planes<const real>&, real*, real*);

}  // namespace carousel::blocked::winograd
