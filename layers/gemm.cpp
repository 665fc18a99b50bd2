// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/gemm.hpp"

#include <algorithm>

namespace carousel::detail {
namespace {

// The block of A fills half of a second-level cache of 512 KiB, the one of B a part of the third.
constexpr int largest_m = 240;
constexpr int largest_n = 512;

int divide_up(int a, int b) {
  return (a + b - 1) / b;
}

/// Length of the equal parts, whole panels each, when `size` is cut into `parts`.
int part_length(int size, int parts, int panel) {
  return divide_up(divide_up(size, parts), panel) * panel;
}

}  // namespace

GemmTile host_tile(const GemmShape& shape, int concurrency) {
  constexpr int panel_m = HostTiles::panel_m;
  constexpr int panel_n = HostTiles::panel_n;
  GemmTile tile = {part_length(shape.m, divide_up(shape.m, largest_m), panel_m),
                   part_length(shape.n, divide_up(shape.n, largest_n), panel_n)};
  const auto busy = [&] {  // fraction of the threads that work until the last tile is done
    const std::int64_t tiles =
        std::int64_t{divide_up(shape.m, tile.m)} * divide_up(shape.n, tile.n);
    return static_cast<double>(tiles) /
           (divide_up(static_cast<int>(tiles), concurrency) * concurrency);
  };
  while (busy() < 0.9 && (tile.m > panel_m || tile.n > panel_n)) {
    // The longer side, because packing costs the sum of both.
    if (tile.n > panel_n && (tile.n >= tile.m || tile.m == panel_m))
      tile.n = part_length(tile.n, 2, panel_n);
    else
      tile.m = part_length(tile.m, 2, panel_m);
  }
  return tile;
}

}  // namespace carousel::detail
