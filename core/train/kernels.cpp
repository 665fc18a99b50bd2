// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/kernels.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/copy.hpp"
#include "core/base/range.hpp"

namespace carousel {

void note_times(const ExecutionSpace& exec, const OperationTimes* times, const double* begun,
                MessageRecord* row) {
  static const std::string label = "carousel::train::note_times";
  Kokkos::parallel_for(
      label, range(exec, 1), KOKKOS_LAMBDA(int) {
        row->posted = times->started;
        row->completed = times->completed;
        row->waited = row->completed > *begun ? row->waited - *begun : 0;
      });
}

void store_parameters(const ExecutionSpace& exec, std::span<const ParameterRange> ranges,
                      std::int64_t first, std::int64_t size, const real* full, std::byte* stored) {
  std::int64_t origin = -1;  // of what is put there
  for (const ParameterRange& range : ranges) {
    const std::int64_t begin = std::max(range.begin, first);
    const std::int64_t end = std::min(range.end, first + size);
    if (begin >= end) continue;
    const real* const from = full + (begin - first);
    const std::int64_t at = range.stored_begin + (begin - range.begin) * size_of(range.type);
    if (origin < 0) origin = at;
    std::byte* const to = stored + (at - origin);
    if (range.type == DataType::full)
      copy<MemorySpace, MemorySpace>(exec, to, from, (end - begin) * sizeof(real));
    else
      shorten(exec, from, reinterpret_cast<Bfloat16*>(to), end - begin);
  }
}

void store_numbers(DataType type, std::span<const real> full, std::byte* stored) {
  if (type == DataType::full) {
    std::memcpy(stored, full.data(), full.size_bytes());
    return;
  }
  auto* to = reinterpret_cast<Bfloat16*>(stored);
  for (const real number : full) *to++ = to_bfloat16(static_cast<float>(number));
}

void restore_numbers(DataType type, const std::byte* stored, std::span<real> full) {
  if (type == DataType::full) {
    std::memcpy(full.data(), stored, full.size_bytes());
    return;
  }
  const auto* from = reinterpret_cast<const Bfloat16*>(stored);
  for (real& number : full) number = to_float(*from++);
}

}  // namespace carousel
