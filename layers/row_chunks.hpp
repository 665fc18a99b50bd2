// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of numbers in pieces of work: neighbours of one row that one index stands for, of which
// hosts take many at once.

#include "core/base/range.hpp"

namespace carousel {

/// Numbers first .. end - 1 of a row.
struct RowChunk {
  std::int64_t row;
  std::int64_t first;
  std::int64_t end;
};

struct RowChunks {
  std::int64_t rows;
  std::int64_t count;  // numbers of a row

  [[nodiscard]] KOKKOS_FUNCTION std::int64_t of_row() const { return (count + most - 1) / most; }
  [[nodiscard]] RangePolicy indices(const ExecutionSpace& exec) const {
    return range(exec, rows * of_row());
  }
  [[nodiscard]] KOKKOS_FUNCTION RowChunk at(std::int64_t index) const {
    const std::int64_t first = index % of_row() * most;
    return {index / of_row(), first, Kokkos::min(first + most, count)};
  }

 private:
  static constexpr std::int64_t most = runs_on_host ? 1024 : 1;
};

}  // namespace carousel
