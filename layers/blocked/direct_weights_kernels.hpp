// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inside of direct_weights.hpp, for the sources that compile it for a kind of products.

#include <algorithm>

#include "core/base/range.hpp"
#include "core/model/workspace.hpp"
#include "layers/blocked/direct_weights.hpp"
#include "layers/blocked/register_tile.hpp"
#include "layers/blocked/tasks.hpp"
#include "layers/blocked/transpose.hpp"

namespace carousel::blocked {
namespace direct {

/// Blocks of the input that a task meets with each register of gradients before it fetches the
/// next one, from a far cache; fewer where threads would have no work. It changes no sum.
inline int blocks_at_once(int blocks, int chunks, int threads, int most) {
  return std::clamp(blocks * chunks / (4 * threads), 1, most);
}

/// Most blocks at once. Pairs of gradients are made again for each such set of blocks.
template <class Products>
constexpr int most_blocks = Products::together == 1 ? 4 : 16;

/// Rows of the grid of which bytes_of(rows), those of a copy, fit a cache.
template <class Bytes>
int rows_in_cache(const Windows& windows, std::int64_t cache, const Bytes& bytes_of) {
  int rows = windows.h;
  while (rows > 1 && bytes_of(rows) > cache) rows = (rows + 1) / 2;
  return rows;
}
template <class Products>
int rows_at_once(const Windows& windows) {
  constexpr std::int64_t cache = (std::int64_t{1} << 20) / most_blocks<Products>;
  constexpr auto bytes = std::int64_t{sizeof(StoredBy<Products>)} * Products::together;
  return rows_in_cache(windows, cache, [&](int rows) {
    return Region(windows, GridPart::first(1, rows)).pixels() * windows.pixel * bytes;
  });
}

/// Gradients of a group of registers, pixel by pixel.
template <class Stored>
struct Gradients {
  const Stored* data;
  std::int64_t row;
  std::int64_t plane;
};

/// sums [block of results][depth][lanes] += the products of some rows of the input at one tap with
/// those of gradients, for a group of registers. at(y) is the input that row y of the grid begins
/// to meet.
template <class Products, int Vectors, class Stored, class At>
void add_tap(const Windows& windows, const Segment& rows, const At& at,
             const Gradients<Stored>& gradients, bool is_first, real* sums) {
  constexpr int together = Products::together;
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
      for (int r = 0; r < rows.size; ++r)
        tile.template add_columns<Products>(windows.w, at(rows.first + r) + depth.first * together,
                                            std::int64_t{windows.step} * windows.pixel * together,
                                            gradients.data + r * gradients.row, together * lanes,
                                            gradients.plane);
      tile.put(to, lanes, plane);
    });
  }
}

/// Slices of the grids of images, of `together` images each, that partial sums run over.
struct SliceOfImages {
  int image;
  int slice;

  SliceOfImages(const Windows& windows, int together, int number)
      : image(number / windows.d * together), slice(number % windows.d) {}
};

/// What a task makes: the sums of some slices of images for some blocks of the input, one `panel`
/// after the other.
struct Share {
  Segment slices;
  Segment blocks;
  real* sums;
  std::int64_t panel;
};

/// How a task makes its share with a kind of products.
template <class Products>
struct ShareOf {
  /// Numbers that a task copies.
  template <class Input>
  static std::int64_t copied(const Windows& windows, const Input& input, int blocks) {
    const int rows = rows_at_once<Products>(windows);
    const std::int64_t x =
        Region(windows, GridPart::first(1, rows)).pixels() * windows.pixel * blocks;
    if constexpr (Products::together == 1) return input.copies(windows) ? x : 0;
    return 2 * (x + std::int64_t{rows} * windows.w * tile_vectors * lanes);
  }
  template <int Vectors, class Input, class Stored>
  static void make(const Windows& windows, const Input& input, const Planes<const Stored>& d_y,
                   const Share& share, StoredBy<Products>* scratch);
};

/// Image by image.
template <class Products, int Vectors, class Input, class Stored>
requires(Products::together == 1) void run_share(const Windows& windows, const Input& input,
                                                 const Planes<const Stored>& d_y,
                                                 const Share& share, StoredBy<Products>* scratch) {
  const int results = d_y.blocks * lanes;
  const bool copies = input.copies(windows);
  const int parts = segments(windows.h, rows_at_once<Products>(windows));
  for (int i = 0; i < share.slices.size * parts; ++i) {
    const auto [image, slice] = SliceOfImages(windows, 1, share.slices.first + i / parts);
    const Segment rows = segment(windows.h, parts, i % parts);
    const auto source = copies ? input.copy(Region(windows, {{slice, 1}, rows}), image,
                                            share.blocks.first, share.blocks.size, scratch)
                               : input.direct(image, share.blocks.first);
    for (int k = 0; k < d_y.blocks; k += Vectors) {
      const Gradients<Stored> gradients = {d_y.pixel(image, k, slice, rows.first, 0),
                                           std::int64_t{d_y.w} * lanes, d_y.plane_size()};
      for (int b = 0; b < share.blocks.size; ++b) {
        real* to = share.sums + b * share.panel + std::int64_t{k} * windows.depth * lanes;
        for (const Tap& tap : windows.taps) {
          const auto at = [&, z = slice](int y) { return source.at(windows, z, y, 0, b, tap); };
          add_tap<Products, Vectors>(windows, rows, at, gradients, i == 0, to);
          to += std::int64_t{windows.depth} * results;
        }
      }
    }
  }
}

/// Gradients of some rows of a slice of an image and the one behind it in pairs:
/// [register][pixel][lanes][2].
template <int Vectors>
void pair_gradients(const Planes<const Bfloat16>& d_y, const SliceOfImages& at, int block,
                    const Segment& rows, Bfloat16* to) {
  const BlockedInput<Plain, Bfloat16> gradients = {d_y, {}};
  const std::int64_t first = (std::int64_t{at.slice} * d_y.h + rows.first) * d_y.w;
  const std::int64_t end = first + std::int64_t{rows.size} * d_y.w;
  for (int v = 0; v < Vectors; ++v) {
    for (std::int64_t pixel = first; pixel < end; ++pixel, to += 2 * lanes)
      gradients.copy_pair(at.image, block + v, pixel, to);
  }
}

/// Two images at a time, whose products of a pixel make pairs.
template <class Products, int Vectors, class Input>
requires(Products::together == 2) void run_share(const Windows& windows, const Input& input,
                                                 const Planes<const Bfloat16>& d_y,
                                                 const Share& share, Bfloat16* scratch) {
  const int results = d_y.blocks * lanes;
  const int at_once = rows_at_once<Products>(windows);
  const int parts = segments(windows.h, at_once);
  Bfloat16* pairs = scratch + 2 * Region(windows, GridPart::first(1, at_once)).pixels() *
                                  windows.pixel * share.blocks.size;
  for (int i = 0; i < share.slices.size * parts; ++i) {
    const SliceOfImages place(windows, 2, share.slices.first + i / parts);
    const Segment rows = segment(windows.h, parts, i % parts);
    const Region region(windows, {{place.slice, 1}, rows});
    const std::int64_t pixel = std::int64_t{2} * windows.pixel;
    input.copy_pairs(region, place.image, share.blocks.first, share.blocks.size, scratch);
    for (int k = 0; k < d_y.blocks; k += Vectors) {
      pair_gradients<Vectors>(d_y, place, k, rows, pairs);
      const std::int64_t row = std::int64_t{2} * d_y.w * lanes;
      const Gradients<Bfloat16> gradients = {pairs, row, rows.size * row};
      for (int b = 0; b < share.blocks.size; ++b) {
        real* to = share.sums + b * share.panel + std::int64_t{k} * windows.depth * lanes;
        const Bfloat16* block = scratch + b * region.pixels() * pixel;
        for (const Tap& tap : windows.taps) {
          const std::int64_t behind =
              std::int64_t{place.slice} * windows.step + tap.z - region.front;
          const auto at = [&](int y) {
            const std::int64_t down =
                behind * region.rows + std::int64_t{y} * windows.step + tap.y - region.top;
            return block + (down * region.columns + tap.x - region.left) * pixel;
          };
          add_tap<Products, Vectors>(windows, rows, at, gradients, i == 0, to);
          to += std::int64_t{windows.depth} * results;
        }
      }
    }
  }
}

template <class Products>
template <int Vectors, class Input, class Stored>
void ShareOf<Products>::make(const Windows& windows, const Input& input,
                             const Planes<const Stored>& d_y, const Share& share,
                             StoredBy<Products>* scratch) {
  run_share<Products, Vectors>(windows, input, d_y, share, scratch);
}

/// Adds the chunks, in order, and puts the sums where PyTorch has them.
inline void add_chunks(const ExecutionSpace& exec, const std::string& label, int chunks,
                       std::int64_t size, const real* partial, int sum_blocks, int depth,
                       int result_blocks, const WeightStrides& strides, real* d_weights) {
  const bool is_square = strides.taps == 1 && strides.sum == 1 && depth == lanes;
  for_each_blocks(exec, label, result_blocks, sum_blocks, [=](int block, int b) {
    real* to = d_weights + std::int64_t{block} * lanes * strides.result +
               std::int64_t{b} * lanes * strides.sum;
    const auto sum_of = [&](int d, int t) {
      const std::int64_t panel = (std::int64_t{b} * strides.taps + t) * result_blocks + block;
      const real* numbers = partial + (panel * depth + d) * lanes;
      Lanes sum = load(numbers);
      for (int c = 1; c < chunks; ++c) sum += load(numbers + c * size);
      return sum;
    };
    if (is_square) {
      Lanes square[lanes];
      for (int d = 0; d < lanes; ++d) square[d] = sum_of(d, 0);
      transpose(square);
      for (int l = 0; l < lanes; ++l) store(to + l * strides.result, square[l]);
      return;
    }
    for (int d = 0; d < depth; ++d) {
      for (int t = 0; t < strides.taps; ++t) {
        const Lanes sum = sum_of(d, t);
        real* first = to + offset_of(strides, t, d);
        for (int l = 0; l < lanes; ++l) first[l * strides.result] = sum[l];
      }
    }
  });
}

}  // namespace direct

template <class Products, class Input, class Stored>
void weight_gradient(const ExecutionSpace& exec, const std::string& label, const Windows& windows,
                     const Input& input, const Planes<const Stored>& d_y,
                     const WeightStrides& strides, real* partial, real* d_weights) {
  const int blocks = input.blocks();
  const int units = segments(input.images(), Products::together) * windows.d;
  const int chunks = weight_chunks(units, blocks);
  const auto taps = static_cast<int>(windows.taps.size());
  const int results = d_y.blocks * lanes;
  const std::int64_t panel = std::int64_t{taps} * windows.depth * results;
  using ShareOf = direct::ShareOf<Products>;
  const int at_once =
      direct::blocks_at_once(blocks, chunks, concurrency(exec), direct::most_blocks<Products>);
  const int sets = segments(blocks, at_once);
  const std::int64_t copy = ShareOf::copied(windows, input, at_once);
  const Windows* at = &windows;  // a copy would take from the heap
  for_each_task(exec, label, chunks * sets, in_reals<StoredBy<Products>>(copy),
                [=](int task, real* scratch) {
                  const ZeroSubnormals zero(Products::together > 1);
                  [[maybe_unused]] const typename SumsOf<Products>::Session session;
                  const Segment set = segment(blocks, sets, task % sets);
                  const direct::Share share = {
                      segment(units, chunks, task / sets), set,
                      partial + (std::int64_t{task / sets} * blocks + set.first) * panel, panel};
                  with_vectors(d_y.blocks, [&](auto vectors) {
                    ShareOf::template make<vectors>(*at, input, d_y, share,
                                                    reinterpret_cast<StoredBy<Products>*>(scratch));
                  });
                });
  direct::add_chunks(exec, label, chunks, blocks * panel, partial, blocks, windows.depth,
                     d_y.blocks, strides, d_weights);
}

}  // namespace carousel::blocked
