// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inside of direct.hpp, for the sources that compile it for a kind of products.

#include <algorithm>

#include "core/base/range.hpp"
#include "layers/blocked/direct.hpp"
#include "layers/blocked/register_tile.hpp"
#include "layers/blocked/transpose.hpp"
#include "layers/stored.hpp"

namespace carousel::blocked {
namespace direct {

/// Rows of slices of one image, or several whole images: what a task computes.
struct Work {
  int images;
  int slices;
  int rows;
};

/// So much that the weights are read for many pixels, and so little that copies fit a cache and
/// all threads have work.
template <class Stored>
Work work_of_task(const Windows& windows, int images, int blocks, int threads) {
  constexpr std::int64_t cache = std::int64_t{384} << 10;
  constexpr int pixels = 128;
  Work work = {1, windows.d, windows.h};
  const auto is_too_much = [&] {
    const Region region(windows, GridPart::first(work.slices, work.rows));
    const int tasks = segments(images, work.images) * segments(windows.d, work.slices) *
                      segments(windows.h, work.rows);
    return region.pixels() * blocks * windows.pixel * std::int64_t{sizeof(Stored)} > cache ||
           tasks < 4 * threads;
  };
  while (work.slices > 1 && is_too_much()) work.slices = (work.slices + 1) / 2;
  while (work.rows > 1 && is_too_much()) work.rows = (work.rows + 1) / 2;
  if (work.slices < windows.d || work.rows < windows.h) return work;
  while (work.images * windows.d * windows.h * windows.w < pixels && 2 * work.images <= images &&
         segments(images, 2 * work.images) >= 4 * threads)
    work.images *= 2;
  return work;
}

/// In how many sets a row's tiles read the blocks: so many that the weights of a set, for a group
/// of registers, stay in a first cache from tile to tile of so many rows. Between two sets, sums
/// wait.
template <class Stored>
int sets_of_blocks(const Windows& windows, int blocks, int vectors, int rows) {
  constexpr std::int64_t cache = std::int64_t{16} << 10;
  constexpr int enough_tiles = 8;  // for which it pays to fetch sums again
  const std::int64_t bytes = blocks * std::ssize(windows.taps) * windows.depth * vectors * lanes *
                             std::int64_t{sizeof(Stored)};
  if (windows.w < enough_tiles * rows || bytes <= 2 * cache) return 1;
  return std::min(static_cast<int>((bytes + cache - 1) / cache), blocks);
}

/// Where the sums of a row wait between two sets: where they will be, or, where they are rounded
/// there, beside.
template <class Out>
constexpr bool waits_beside = !std::is_same_v<Out, real>;

/// Sums of pixels, from one to the next and from one register of a pixel to the next.
template <class Stored>
struct SumsAt {
  Stored* data;
  std::int64_t pixel;
  std::int64_t plane;
};

/// The sums of one row of the grid for all channels of a group of registers.
template <class Products, int Vectors, class Out>
void sum_row(const Windows& windows, const WindowSource<StoredBy<Products>>& source, int z, int y,
             int blocks, const StoredBy<Products>* packed, int taps, const SumsAt<Out>& to,
             const Beginning& beginning, [[maybe_unused]] real* beside) {
  using Stored = StoredBy<Products>;
  const std::int64_t panel = std::int64_t{windows.depth} * Vectors * lanes;
  using Sums = SumsOf<Products>;
  const int pairs = windows.depth / Products::together;
  const int parts = segments(windows.w, Sums::rows);
  const int sets = sets_of_blocks<Stored>(windows, blocks, Vectors, Sums::rows);
  const SumsAt<real> waiting = [&]() -> SumsAt<real> {
    if constexpr (waits_beside<Out>)
      return {beside, Vectors * lanes, lanes};
    else
      return {to.data, to.pixel, to.plane};
  }();
  // While a tile reads a block, it has a part of the same block of the next set brought nearer.
  // Behind the last one is nothing that a prefetch would miss.
  constexpr auto line = static_cast<int>(vector_bytes / sizeof(Stored));
  const int ahead = sets == 1 ? 0 : segments(static_cast<int>(taps * panel / line), parts);
  for (int s = 0; s < sets; ++s) {
    const Segment set = segment(blocks, sets, s);
    for (int p = 0; p < parts; ++p) {
      const Segment columns = segment(windows.w, parts, p);
      Out* first = to.data + columns.first * to.pixel;
      real* wait = waiting.data + columns.first * waiting.pixel;
      // Never a call: behind one, sums would be in memory.
      const auto add = [&](auto& sums) __attribute__((always_inline)) {
        if (s > 0)
          sums.fetch(wait, waiting.pixel, waiting.plane);
        else if (beginning.adds)
          sums.fetch(first, to.pixel, to.plane);
        else if (beginning.bias != nullptr)
          sums.begin(beginning.bias);
        else
          sums.clear();
        for (int b = set.first; b < set.first + set.size; ++b) {
          const Stored* weights = packed + b * taps * panel;
          const Stored* next = weights + set.size * taps * panel + p * ahead * line;
          for (int k = 0; k < ahead; ++k) __builtin_prefetch(next + k * line, 0, 2);
          for (const Tap& tap : windows.taps) {
            sums.template add_rows<Products>(pairs, source.at(windows, z, y, columns.first, b, tap),
                                             std::int64_t{windows.step} * windows.pixel,
                                             weights + tap.number * panel,
                                             Products::together * Vectors * lanes);
          }
        }
        if (s + 1 < sets)
          sums.put(wait, waiting.pixel, waiting.plane);
        else
          sums.put(first, to.pixel, to.plane);
      };
      Sums::template with<Vectors>(columns.size, pairs, add);
    }
  }
}

/// What a task computes: a part of images, of some channels.
struct Part {
  Segment images;
  GridPart grid;
  Segment groups;  // of as many blocks as a register tile has registers
};

/// Numbers that the copy of a part of an image takes.
template <class Input>
std::int64_t copied(const Windows& windows, const Input& input, const Region& region) {
  return region.pixels() * input.blocks() * windows.pixel;
}

template <class Products, int Vectors, class Input, class Out>
void run_task(const Windows& windows, const Input& input, const StoredBy<Products>* packed,
              int taps, const Planes<Out>& y, const Beginning& beginning, const Part& part,
              StoredBy<Products>* scratch, real* beside) {
  const bool copies = input.copies(windows);
  const Region region(windows, part.grid);
  const std::int64_t copy = copied(windows, input, region);
  const Segment& slices = part.grid.slices;
  const Segment& rows = part.grid.rows;
  const std::int64_t panels = std::int64_t{input.blocks()} * taps * windows.depth * Vectors * lanes;
  WindowSource<StoredBy<Products>> source = {};
  for (int i = 0; i < part.images.size && copies; ++i)
    source = input.copy(region, part.images.first + i, 0, input.blocks(), scratch + i * copy);
  for (int g = part.groups.first; g < part.groups.first + part.groups.size; ++g) {
    const int b = g * Vectors;
    const Beginning here = {beginning.adds, beginning.bias == nullptr
                                                ? nullptr
                                                : beginning.bias + std::int64_t{b} * lanes};
    for (int i = 0; i < part.images.size; ++i) {
      const int image = part.images.first + i;
      if (copies)
        source.data = scratch + i * copy;
      else
        source = input.direct(image, 0);
      for (int k = 0; k < slices.size * rows.size; ++k) {
        const int z = slices.first + k / rows.size;
        const int r = rows.first + k % rows.size;
        const SumsAt<Out> to = {y.pixel(image, b, z * windows.out_step + windows.out_z,
                                        r * windows.out_step + windows.out_y, windows.out_x),
                                std::int64_t{windows.out_step} * lanes, y.plane_size()};
        sum_row<Products, Vectors>(windows, source, z, r, input.blocks(), packed + g * panels, taps,
                                   to, here, beside);
      }
    }
  }
}

/// to[d / together][l][together] = from[d][l] for a block of channels.
template <class Products, class Weight>
void gather_rows(const Weight* from, std::int64_t stride, StoredBy<Products>* to,
                 std::int64_t row) {
  for (int d = 0; d < lanes;
       d += Products::together, to += row, from += Products::together * stride) {
    if constexpr (Products::together == 1) {
      store(to, load(from));
    } else {
      Words first;
      Words second;
      widen(first, from);
      widen(second, from + stride);
      put_pairs(to, first, second);
    }
  }
}

/// The same of weights anywhere, tap after tap.
template <class Products, class Weight>
void gather_weights(const WeightStrides& strides, const Weight* from, int depth,
                    StoredBy<Products>* to, std::int64_t row) {
  constexpr int together = Products::together;
  for (int t = 0; t < strides.taps; ++t) {
    for (int d = 0; d < depth; d += together, to += row) {
      for (int j = 0; j < together; ++j) {
        const Weight* first = from + offset_of(strides, t, d + j);
        for (int l = 0; l < lanes; ++l) put(to[l * together + j], full(first[l * strides.result]));
      }
    }
  }
}

}  // namespace direct

template <class Products, class Weight>
void pack_weights(const ExecutionSpace& exec, const std::string& label,
                  const WeightStrides& strides, const Weight* weights, int result_blocks,
                  int sum_blocks, int depth, StoredBy<Products>* packed) {
  constexpr int together = Products::together;
  const int vectors = vectors_of(result_blocks);
  const std::int64_t row = std::int64_t{together} * vectors * lanes;
  const bool is_square = strides.taps == 1 && depth == lanes;
  for_each_blocks(exec, label, result_blocks, sum_blocks, [=](int block, int b) {
    const Weight* from = weights + std::int64_t{block} * lanes * strides.result +
                         std::int64_t{b} * lanes * strides.sum;
    StoredBy<Products>* to =
        packed +
        (std::int64_t{block / vectors} * sum_blocks + b) * strides.taps * depth * vectors * lanes +
        std::int64_t{block % vectors} * together * lanes;
    if (is_square && strides.sum == 1)
      turn<Products>([=](int l) { return from + l * strides.result; }, to, row);
    else if (is_square && strides.result == 1)
      direct::gather_rows<Products>(from, strides.sum, to, row);
    else
      direct::gather_weights<Products>(strides, from, depth, to, row);
  });
}

template <class Products, class Input, class Out>
void convolve(const ExecutionSpace& exec, const std::string& label, const Windows& windows,
              const Input& input, const StoredBy<Products>* packed, int taps, const Planes<Out>& y,
              const Beginning& beginning) {
  using Stored = StoredBy<Products>;
  const int threads = concurrency(exec);
  const bool copies = input.copies(windows);
  const direct::Work work =
      direct::work_of_task<Stored>(windows, input.images(), input.blocks(), threads);
  const int slabs = segments(windows.d, work.slices);
  const int strips = segments(windows.h, work.rows);
  const int parts = slabs * strips;
  const int sets = segments(input.images(), work.images);
  // Channels are cut only where nothing would be copied again for each part of them.
  const int groups = y.blocks / vectors_of(y.blocks);
  const int cuts = copies ? 1 : std::clamp(segments(4 * threads, sets * parts), 1, groups);
  const std::int64_t beside =
      direct::waits_beside<Out> ? std::int64_t{windows.w} * tile_vectors * lanes : 0;
  const Region largest(windows, GridPart::first(work.slices, work.rows));
  const std::int64_t copy =
      copies ? work.images * direct::copied(windows, input, largest) : std::int64_t{0};
  const std::int64_t copy_size = in_reals<Stored>(copy);
  // Tasks read `windows` where it is: a copy would take from the heap.
  const Windows* at = &windows;
  for_each_task(exec, label, sets * parts * cuts, beside + copy_size, [=](int task, real* scratch) {
    const ZeroSubnormals zero(Products::together > 1);
    [[maybe_unused]] const typename SumsOf<Products>::Session session;
    const int place = task / cuts % parts;
    const direct::Part part = {
        segment(input.images(), sets, task / cuts / parts),
        {segment(at->d, slabs, place / strips), segment(at->h, strips, place % strips)},
        segment(groups, cuts, task % cuts)};
    auto* copied = reinterpret_cast<Stored*>(scratch + beside);
    with_vectors(y.blocks, [&](auto vectors) {
      direct::run_task<Products, vectors>(*at, input, packed, taps, y, beginning, part, copied,
                                          scratch);
    });
  });
}

}  // namespace carousel::blocked
