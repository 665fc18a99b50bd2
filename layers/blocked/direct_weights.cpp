// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/direct_weights.hpp"

#include <algorithm>

#include "core/base/range.hpp"
#include "core/model/workspace.hpp"
#include "layers/blocked/register_tile.hpp"
#include "layers/blocked/tasks.hpp"

namespace carousel::blocked {
namespace {

/// Blocks of the input that a task meets with each register of gradients before it fetches the
/// next one, from a far cache; fewer where threads would have no work. It changes no sum.
int blocks_at_once(int blocks, int chunks, int threads) {
  constexpr int most = 4;
  return std::clamp(blocks * chunks / (4 * threads), 1, most);
}

/// Rows of the grid whose copy fits a cache.
int rows_at_once(const Windows& windows) {
  constexpr std::int64_t cache = std::int64_t{256} << 10;
  int rows = windows.h;
  while (rows > 1 &&
         Region(windows, 0, rows).pixels() * windows.pixel * std::int64_t{sizeof(real)} > cache)
    rows = (rows + 1) / 2;
  return rows;
}

/// sums [block of results][depth][lanes] += the products of some rows of one image at one tap, for
/// a group of registers.
template <int Vectors>
void add_tap(const Windows& windows, const WindowSource& source, int b, const Tap& tap,
             const Segment& rows, const Planes<const real>& d_y, int image, int block,
             bool is_first, real* sums) {
  const int parts = segments(windows.depth, column_rows);
  for (int p = 0; p < parts; ++p) {
    const Segment depth = segment(windows.depth, parts, p);
    real* to = sums + std::int64_t{depth.first} * lanes;
    const std::int64_t plane = std::int64_t{windows.depth} * lanes;
    with_rows<column_rows>(depth.size, [&](auto count) {
      RegisterTile<count, Vectors> tile;
      if (is_first)
        tile.clear();
      else
        tile.fetch(to, lanes, plane);
      for (int y = rows.first; y < rows.first + rows.size; ++y)
        tile.add_columns(windows.w, source.at(windows, y, 0, b, tap) + depth.first,
                         std::int64_t{windows.step} * windows.pixel, d_y.pixel(image, block, y, 0),
                         lanes, d_y.plane_size());
      tile.put(to, lanes, plane);
    });
  }
}

/// The sums of some images for some blocks of the input, one `panel` after the other.
template <int Vectors, class Input>
void run_chunk(const Windows& windows, const Input& input, const Planes<const real>& d_y,
               const Segment& images, const Segment& blocks, real* sums, std::int64_t panel,
               real* scratch) {
  const int results = d_y.blocks * lanes;
  const bool copies = input.copies(windows);
  const int parts = segments(windows.h, rows_at_once(windows));
  for (int i = 0; i < images.size * parts; ++i) {
    const int image = images.first + i / parts;
    const Segment rows = segment(windows.h, parts, i % parts);
    const WindowSource source = copies ? input.copy(Region(windows, rows.first, rows.size), image,
                                                    blocks.first, blocks.size, scratch)
                                       : input.direct(image, blocks.first);
    for (int k = 0; k < d_y.blocks; k += Vectors) {
      for (int b = 0; b < blocks.size; ++b) {
        real* to = sums + b * panel + std::int64_t{k} * windows.depth * lanes;
        for (const Tap& tap : windows.taps) {
          add_tap<Vectors>(windows, source, b, tap, rows, d_y, image, k, i == 0, to);
          to += std::int64_t{windows.depth} * results;
        }
      }
    }
  }
}

/// Adds the chunks, in order, and puts the sums where PyTorch has them.
void add_chunks(const ExecutionSpace& exec, const std::string& label, int chunks, std::int64_t size,
                const real* partial, int sum_blocks, int depth, int result_blocks,
                const WeightStrides& strides, real* d_weights) {
  for_each_task(exec, label, result_blocks * sum_blocks, [=](int task) {
    const int block = task / sum_blocks;
    const int b = task % sum_blocks;
    real* to = d_weights + std::int64_t{block} * lanes * strides.result +
               std::int64_t{b} * lanes * strides.sum;
    for (int d = 0; d < depth; ++d) {
      for (int t = 0; t < strides.taps; ++t) {
        const std::int64_t panel = (std::int64_t{b} * strides.taps + t) * result_blocks + block;
        const real* numbers = partial + (panel * depth + d) * lanes;
        Lanes sum = load(numbers);
        for (int c = 1; c < chunks; ++c) sum += load(numbers + c * size);
        real* first = to + offset_of(strides, t, d);
        for (int l = 0; l < lanes; ++l) first[l * strides.result] = sum[l];
      }
    }
  });
}

}  // namespace

template <class Input>
void weight_gradient(const ExecutionSpace& exec, const std::string& label, const Windows& windows,
                     const Input& input, const Planes<const real>& d_y,
                     const WeightStrides& strides, real* partial, real* d_weights) {
  const int blocks = input.blocks();
  const int chunks = weight_chunks(input.images(), blocks);
  const auto taps = static_cast<int>(windows.taps.size());
  const int results = d_y.blocks * lanes;
  const std::int64_t panel = std::int64_t{taps} * windows.depth * results;
  const int at_once = blocks_at_once(blocks, chunks, concurrency(exec));
  const int sets = segments(blocks, at_once);
  const std::int64_t copy =
      Region(windows, 0, rows_at_once(windows)).pixels() * windows.pixel * at_once;
  const Windows* at = &windows;  // a copy would take from the heap
  for_each_task(exec, label, chunks * sets, input.copies(windows) ? copy : 0,
                [=](int task, real* scratch) {
                  const Segment images = segment(input.images(), chunks, task / sets);
                  const Segment set = segment(blocks, sets, task % sets);
                  real* sums = partial + (std::int64_t{task / sets} * blocks + set.first) * panel;
                  with_vectors(d_y.blocks, [&](auto vectors) {
                    run_chunk<vectors>(*at, input, d_y, images, set, sums, panel, scratch);
                  });
                });
  add_chunks(exec, label, chunks, blocks * panel, partial, blocks, windows.depth, d_y.blocks,
             strides, d_weights);
}

void bias_gradient(const ExecutionSpace& exec, const std::string& label,
                   const Planes<const real>& d_y, real* d_bias) {
  for_each_task(exec, label, d_y.blocks, [=](int block) {
    double sum[lanes] = {};
    for (int i = 0; i < d_y.images; ++i) {
      const real* from = d_y.plane(i, block);
      const std::int64_t numbers = std::int64_t{d_y.h} * d_y.w * lanes;
      for (std::int64_t p = 0; p < numbers; p += lanes) {
        for (int l = 0; l < lanes; ++l) sum[l] += static_cast<double>(from[p + l]);
      }
    }
    for (int l = 0; l < lanes; ++l) d_bias[block * lanes + l] = static_cast<real>(sum[l]);
  });
}

template void weight_gradient(const ExecutionSpace&, const std::string&, const Windows&,
                              const BlockedInput<Plain>&, const Planes<const real>&,
                              const WeightStrides&, real*, real*);
template void weight_gradient(const ExecutionSpace&, const std::string&, const Windows&,
                              const BlockedInput<NormRelu>&, const Planes<const real>&,
                              const WeightStrides&, real*, real*);
template void weight_gradient(const ExecutionSpace&, const std::string&, const Windows&,
                              const ImageInput&, const Planes<const real>&, const WeightStrides&,
                              real*, real*);

}  // namespace carousel::blocked
