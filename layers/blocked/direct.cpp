// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/direct.hpp"

#include <algorithm>

#include "core/base/range.hpp"
#include "layers/blocked/register_tile.hpp"
#include "layers/blocked/tasks.hpp"

namespace carousel::blocked {
namespace {

/// Rows of one image, or several whole images: what a task computes.
struct Work {
  int images;
  int rows;
};

/// So much that the weights are read for many pixels, and so little that copies fit a cache and
/// all threads have work.
Work work_of_task(const Windows& windows, int images, int blocks, int threads) {
  constexpr std::int64_t cache = std::int64_t{384} << 10;
  constexpr int pixels = 128;
  const auto fits = [&](int rows) {
    const Region region(windows, 0, rows);
    return region.pixels() * blocks * windows.pixel * std::int64_t{sizeof(real)} <= cache;
  };
  Work work = {1, windows.h};
  const auto tasks = [&] { return segments(images, work.images) * segments(windows.h, work.rows); };
  while (work.rows > 1 && (!fits(work.rows) || tasks() < 4 * threads))
    work.rows = (work.rows + 1) / 2;
  if (work.rows < windows.h) return work;
  while (work.images * windows.h * windows.w < pixels && 2 * work.images <= images &&
         segments(images, 2 * work.images) >= 4 * threads)
    work.images *= 2;
  return work;
}

/// In how many sets a row's tiles read the blocks: so many that the weights of a set, for a group
/// of registers, stay in a first cache from tile to tile. Between two sets, sums wait in the
/// output.
int sets_of_blocks(const Windows& windows, int blocks, int vectors) {
  constexpr std::int64_t cache = std::int64_t{16} << 10;
  constexpr int enough_tiles = 8;  // for which it pays to fetch sums again
  const std::int64_t bytes =
      blocks * std::ssize(windows.taps) * windows.depth * vectors * vector_bytes;
  if (windows.w < enough_tiles * tile_rows || bytes <= 2 * cache) return 1;
  return std::min(static_cast<int>((bytes + cache - 1) / cache), blocks);
}

/// The sums of one row of the grid for all channels of a group of registers.
template <int Vectors>
void sum_row(const Windows& windows, const WindowSource& source, int y, int blocks,
             const real* packed, int taps, real* to, std::int64_t to_pixel, std::int64_t to_plane,
             const Beginning& beginning) {
  const std::int64_t panel = std::int64_t{windows.depth} * Vectors * lanes;
  const int parts = segments(windows.w, tile_rows);
  const int sets = sets_of_blocks(windows, blocks, Vectors);
  // While a tile reads a block, it has a part of the same block of the next set brought nearer.
  // Behind the last one is nothing that a prefetch would miss.
  const int ahead = sets == 1 ? 0 : segments(static_cast<int>(taps * panel / lanes), parts);
  for (int s = 0; s < sets; ++s) {
    const Segment set = segment(blocks, sets, s);
    for (int p = 0; p < parts; ++p) {
      const Segment columns = segment(windows.w, parts, p);
      real* first = to + columns.first * to_pixel;
      with_rows<tile_rows>(columns.size, [&](auto count) {
        RegisterTile<count, Vectors> sums;
        if (beginning.adds || s > 0)
          sums.fetch(first, to_pixel, to_plane);
        else if (beginning.bias != nullptr)
          sums.begin(beginning.bias);
        else
          sums.clear();
        for (int b = set.first; b < set.first + set.size; ++b) {
          const real* weights = packed + b * taps * panel;
          const real* next = weights + set.size * taps * panel + p * ahead * lanes;
          for (int k = 0; k < ahead; ++k) __builtin_prefetch(next + k * lanes, 0, 2);
          for (const Tap& tap : windows.taps) {
            sums.add_rows(windows.depth, source.at(windows, y, columns.first, b, tap),
                          std::int64_t{windows.step} * windows.pixel, weights + tap.number * panel,
                          Vectors * lanes);
          }
        }
        sums.put(first, to_pixel, to_plane);
      });
    }
  }
}

/// What a task computes: rows of images, of some channels.
struct Part {
  Segment images;
  Segment rows;
  Segment groups;  // of as many blocks as a register tile has registers
};

template <int Vectors, class Input>
void run_task(const Windows& windows, const Input& input, const real* packed, int taps,
              const Planes<real>& y, const Beginning& beginning, const Part& part, real* scratch) {
  const bool copies = input.copies(windows);
  const Region region(windows, part.rows.first, part.rows.size);
  const std::int64_t copy = region.pixels() * input.blocks() * windows.pixel;
  const std::int64_t panels = std::int64_t{input.blocks()} * taps * windows.depth * Vectors * lanes;
  WindowSource source = {};
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
      for (int r = part.rows.first; r < part.rows.first + part.rows.size; ++r) {
        sum_row<Vectors>(windows, source, r, input.blocks(), packed + g * panels, taps,
                         y.pixel(image, b, r * windows.out_step + windows.out_y, windows.out_x),
                         std::int64_t{windows.out_step} * lanes, y.plane_size(), here);
      }
    }
  }
}

}  // namespace

void pack_weights(const ExecutionSpace& exec, const std::string& label,
                  const WeightStrides& strides, const real* weights, int result_blocks,
                  int sum_blocks, int depth, real* packed) {
  const int vectors = vectors_of(result_blocks);
  for_each_task(exec, label, result_blocks * sum_blocks, [=](int task) {
    const int b = task % sum_blocks;
    const int block = task / sum_blocks;
    const real* from = weights + std::int64_t{block} * lanes * strides.result +
                       std::int64_t{b} * lanes * strides.sum;
    real* to =
        packed +
        (std::int64_t{block / vectors} * sum_blocks + b) * strides.taps * depth * vectors * lanes +
        block % vectors * lanes;
    for (int t = 0; t < strides.taps; ++t) {
      for (int d = 0; d < depth; ++d, to += std::int64_t{vectors} * lanes) {
        const real* first = from + offset_of(strides, t, d);
        for (int l = 0; l < lanes; ++l) to[l] = first[l * strides.result];
      }
    }
  });
}

template <class Input>
void convolve(const ExecutionSpace& exec, const std::string& label, const Windows& windows,
              const Input& input, const real* packed, int taps, const Planes<real>& y,
              const Beginning& beginning) {
  const int threads = concurrency(exec);
  const bool copies = input.copies(windows);
  const Work work = work_of_task(windows, input.images(), input.blocks(), threads);
  const int parts = segments(windows.h, work.rows);
  const int sets = segments(input.images(), work.images);
  // Channels are cut only where nothing would be copied again for each part of them.
  const int groups = y.blocks / vectors_of(y.blocks);
  const int cuts = copies ? 1 : std::clamp(segments(4 * threads, sets * parts), 1, groups);
  const std::int64_t copy =
      Region(windows, 0, work.rows).pixels() * input.blocks() * windows.pixel * work.images;
  // Tasks read `windows` where it is: a copy would take from the heap.
  const Windows* at = &windows;
  for_each_task(exec, label, sets * parts * cuts, copies ? copy : 0, [=](int task, real* scratch) {
    const Part part = {segment(input.images(), sets, task / cuts / parts),
                       segment(at->h, parts, task / cuts % parts),
                       segment(groups, cuts, task % cuts)};
    with_vectors(y.blocks, [&](auto vectors) {
      run_task<vectors>(*at, input, packed, taps, y, beginning, part, scratch);
    });
  });
}

void clear_grid(const ExecutionSpace& exec, const std::string& label, const Windows& windows,
                const Planes<real>& y) {
  const Windows* at = &windows;
  for_each_task(exec, label, y.images * y.blocks, [=](int task) {
    for (int r = 0; r < at->h; ++r) {
      real* to = y.pixel(task / y.blocks, task % y.blocks, r * at->out_step + at->out_y, at->out_x);
      for (int c = 0; c < at->w; ++c) store(to + std::int64_t{c} * at->out_step * lanes, Lanes{});
    }
  });
}

template void convolve(const ExecutionSpace&, const std::string&, const Windows&,
                       const BlockedInput<Plain>&, const real*, int, const Planes<real>&,
                       const Beginning&);
template void convolve(const ExecutionSpace&, const std::string&, const Windows&,
                       const BlockedInput<NormRelu>&, const real*, int, const Planes<real>&,
                       const Beginning&);
template void convolve(const ExecutionSpace&, const std::string&, const Windows&, const ImageInput&,
                       const real*, int, const Planes<real>&, const Beginning&);

}  // namespace carousel::blocked
