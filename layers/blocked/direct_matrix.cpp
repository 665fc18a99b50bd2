// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The products of pairs by TDPBF16PS, on processors that have it: has_matrix_products() asks.

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "layers/blocked/direct_kernels.hpp"
#include "layers/blocked/direct_weights_kernels.hpp"
#include "layers/blocked/matrix_sums.hpp"
#include "layers/blocked/transpose.hpp"

namespace carousel::blocked {

bool has_matrix_products() {
  static const bool found = [] {
    constexpr unsigned matrices = 1U << 24;
    constexpr unsigned of_bfloat16 = 1U << 22;
    constexpr unsigned long state = 18;  // of a thread, for which Linux wants to be asked
    constexpr long ask = 0x1023;         // ARCH_REQ_XCOMP_PERM, which older headers do not have
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
    if ((d & matrices) == 0 || (d & of_bfloat16) == 0) return false;
    return syscall(SYS_arch_prctl, ask, state) == 0;
  }();
  return found;
}

namespace direct {
namespace {

/// A region of an image and the next in pairs, whose columns lie side by side for every channel:
/// [block][slice][row][lanes][step][columns][2]. Columns that one tap meets follow each other.
struct TurnedRegion {
  Region region;
  int step;
  std::int64_t columns;

  TurnedRegion(const Windows& windows, const GridPart& part)
      : region(windows, part),
        step(windows.step),
        columns(std::int64_t{segments(segments(region.columns, step), matrix_rows)} * matrix_rows) {
  }

  /// From one to the next, in numbers.
  [[nodiscard]] std::int64_t channel() const { return 2 * step * columns; }
  [[nodiscard]] std::int64_t row() const { return channel() * lanes; }
  [[nodiscard]] std::int64_t block() const { return row() * region.rows * region.slices; }
  /// What the first pixel of row y of slice z of the grid meets at a tap, of channel 0.
  [[nodiscard]] std::int64_t at(const Tap& tap, int z, int y) const {
    const std::int64_t behind = std::int64_t{z} * step + tap.z - region.front;
    const int column = tap.x - region.left;
    return (behind * region.rows + std::int64_t{y} * step + tap.y - region.top) * row() +
           2 * (column % step * columns + column / step);
  }

  template <class Input>
  void copy(const Input& input, int image, int b, Bfloat16* to) const {
    const auto& x_at = input.x;
    const int w = x_at.w;
    for (int r = 0; r < region.slices * region.rows; ++r) {
      const int z = region.front + r / region.rows;
      const int y = region.top + r % region.rows;
      const bool in_row = z >= 0 && z < x_at.d && y >= 0 && y < x_at.h;
      const std::int64_t row_of_image = (std::int64_t{z} * x_at.h + y) * w;
      for (int phase = 0; phase < step; ++phase) {
        for (std::int64_t first = 0; first < columns; first += matrix_rows) {
          Words square[matrix_rows];
          for (int k = 0; k < matrix_rows; ++k) {
            const std::int64_t x = region.left + phase + (first + k) * step;
            const bool exists = in_row && x >= 0 && x < w;
            square[k] = exists ? input.pair(image, b, row_of_image + x) : Words{};
          }
          transpose(square);
          Bfloat16* next = to + r * row() + 2 * (phase * columns + first);
          for (int l = 0; l < lanes; ++l, next += channel())
            *reinterpret_cast<LoosePairs*>(next) = square[l];
        }
      }
    }
  }
};

}  // namespace

/// Matrices 0 and 1 have the sums of a block of the input, 2 and 3 its numbers, 4 to 7 gradients:
/// 3, 6 and 7 those of the last columns of a row, which fill no matrix.
template <>
struct ShareOf<MatrixProducts> {
  static int rows_at_once(const Windows& windows) {
    constexpr std::int64_t cache = (std::int64_t{1} << 20) / most_blocks<MatrixProducts>;
    return rows_in_cache(windows, cache, [&](int rows) {
      return TurnedRegion(windows, GridPart::first(1, rows)).block() *
             std::int64_t{sizeof(Bfloat16)};
    });
  }
  template <class Input>
  static std::int64_t copied(const Windows& windows, const Input& /*input*/, int blocks) {
    const int rows = rows_at_once(windows);
    return TurnedRegion(windows, GridPart::first(1, rows)).block() * blocks +
           std::int64_t{2} * rows * windows.w * tile_vectors * lanes;
  }

  template <int Vectors, class Input>
  static void make(const Windows& windows, const Input& input, const Planes<const Bfloat16>& d_y,
                   const Share& share, Bfloat16* scratch) {
    const int rest = windows.w % matrix_rows;
    MatrixShapes shapes;
    for (const int matrix : {0, 1, 2, 4, 5}) shapes.set(matrix, matrix_rows, matrix_bytes);
    if (rest > 0) {
      shapes.set(3, matrix_rows, rest * int{sizeof(std::uint32_t)});
      for (const int matrix : {6, 7}) shapes.set(matrix, rest, matrix_bytes);
    }
    shapes.apply();
    const int at_once = rows_at_once(windows);
    const int parts = segments(windows.h, at_once);
    Bfloat16* pairs =
        scratch + TurnedRegion(windows, GridPart::first(1, at_once)).block() * share.blocks.size;
    for (int i = 0; i < share.slices.size * parts; ++i) {
      const SliceOfImages place(windows, 2, share.slices.first + i / parts);
      const Segment rows = segment(windows.h, parts, i % parts);
      const TurnedRegion x(windows, {{place.slice, 1}, rows});
      for (int b = 0; b < share.blocks.size; ++b)
        x.copy(input, place.image, share.blocks.first + b, scratch + b * x.block());
      for (int k = 0; k < d_y.blocks; k += Vectors) {
        pair_gradients<Vectors>(d_y, place, k, rows, pairs);
        asm volatile("" : : : "memory");  // matrices are loaded from what was written
        for (int b = 0; b < share.blocks.size; ++b) {
          real* to = share.sums + b * share.panel + std::int64_t{k} * windows.depth * lanes;
          for (const Tap& tap : windows.taps) {
            const std::int64_t first = x.at(tap, place.slice, rows.first);
            add_tap<Vectors>(windows, rows.size, scratch + b * x.block() + first, x, pairs, i == 0,
                             to);
            to += std::int64_t{windows.depth} * d_y.blocks * lanes;
          }
        }
      }
    }
  }

 private:
  /// Adds the products of columns, in matrix X, and of their gradients, in G and G + 1.
  template <int Vectors, int X, int G>
  [[gnu::always_inline]] static void add_columns(const Bfloat16* numbers, std::int64_t channel,
                                                 const Bfloat16* gradients,
                                                 std::int64_t register_size) {
    load_matrix<X>(numbers, channel);
    load_matrix<G>(gradients, matrix_bytes);
    add_matrix_products<0, X, G>();
    if constexpr (Vectors == 2) {
      load_matrix<G + 1>(gradients + register_size, matrix_bytes);
      add_matrix_products<1, X, G + 1>();
    }
  }

  template <int Vectors>
  static void add_tap(const Windows& windows, int rows, const Bfloat16* first,
                      const TurnedRegion& x, const Bfloat16* pairs, bool is_first, real* sums) {
    constexpr std::int64_t pixel = 2 * lanes;
    const std::int64_t row = windows.w * pixel;
    const std::int64_t channel = x.channel() * std::int64_t{sizeof(Bfloat16)};
    real* const second = sums + std::int64_t{windows.depth} * lanes;
    if (is_first) {
      clear_matrix<0>();
      if constexpr (Vectors == 2) clear_matrix<1>();
    } else {
      load_matrix<0>(sums, matrix_bytes);
      if constexpr (Vectors == 2) load_matrix<1>(second, matrix_bytes);
    }
    for (int r = 0; r < rows; ++r) {
      const Bfloat16* numbers = first + r * windows.step * x.row();
      const Bfloat16* gradients = pairs + r * row;
      int left = windows.w;
      for (; left >= matrix_rows; left -= matrix_rows) {
        add_columns<Vectors, 2, 4>(numbers, channel, gradients, rows * row);
        numbers += 2 * matrix_rows;
        gradients += matrix_rows * pixel;
      }
      if (left > 0) add_columns<Vectors, 3, 6>(numbers, channel, gradients, rows * row);
    }
    store_matrix<0>(sums, matrix_bytes);
    if constexpr (Vectors == 2) store_matrix<1>(second, matrix_bytes);
  }
};

}  // namespace direct

template void pack_weights<MatrixProducts>(const ExecutionSpace&, const std::string&,
                                           const WeightStrides&, const Bfloat16*, int, int, int,
                                           Bfloat16*);
template void convolve<MatrixProducts>(const ExecutionSpace&, const std::string&, const Windows&,
                                       const BlockedInput<Plain, Bfloat16>&, const Bfloat16*, int,
                                       const Planes<Bfloat16>&, const Beginning&);
template void convolve<MatrixProducts>(const ExecutionSpace&, const std::string&, const Windows&,
                                       const BlockedInput<NormRelu, Bfloat16>&, const Bfloat16*,
                                       int, const Planes<Bfloat16>&, const Beginning&);
template void weight_gradient<MatrixProducts>(const ExecutionSpace&, const std::string&,
                                              const Windows&, const BlockedInput<Plain, Bfloat16>&,
                                              const Planes<const Bfloat16>&, const WeightStrides&,
                                              real*, real*);
template void weight_gradient<MatrixProducts>(const ExecutionSpace&, const std::string&,
                                              const Windows&,
                                              const BlockedInput<NormRelu, Bfloat16>&,
                                              const Planes<const Bfloat16>&, const WeightStrides&,
                                              real*, real*);

}  // namespace carousel::blocked
