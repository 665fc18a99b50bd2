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

namespace {

/// Calls visit(from, count, type, to) for parameters first .. first + size - 1 of a stage, run by
/// run of those that are stored alike: `from` numbers and `to` bytes behind the first one.
template <class Visit>
void for_each_run(std::span<const ParameterRange> ranges, std::int64_t first, std::int64_t size,
                  const Visit& visit) {
  std::int64_t origin = -1;  // of what is put there
  for (const ParameterRange& range : ranges) {
    const std::int64_t begin = std::max(range.begin, first);
    const std::int64_t end = std::min(range.end, first + size);
    if (begin >= end) continue;
    const std::int64_t at = range.stored_begin + (begin - range.begin) * size_of(range.type);
    if (origin < 0) origin = at;
    visit(begin - first, end - begin, range.type, at - origin);
  }
}

template <class Number>
struct Prediction {
  const real* theta;
  const real* before;
  real kappa;
  Number* stored;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const real number = predicted(theta[i], before[i], kappa);
    if constexpr (std::is_same_v<Number, real>)
      stored[i] = number;
    else
      stored[i] = to_bfloat16(static_cast<float>(number));
  }
};

}  // namespace

void store_parameters(const ExecutionSpace& exec, std::span<const ParameterRange> ranges,
                      std::int64_t first, std::int64_t size, const real* full, std::byte* stored) {
  for_each_run(ranges, first, size,
               [&](std::int64_t from, std::int64_t count, DataType type, std::int64_t to) {
                 if (type == DataType::full)
                   copy<MemorySpace, MemorySpace>(exec, stored + to, full + from,
                                                  count * sizeof(real));
                 else
                   shorten(exec, full + from, reinterpret_cast<Bfloat16*>(stored + to), count);
               });
}

void store_predicted(const ExecutionSpace& exec, std::span<const ParameterRange> ranges,
                     std::int64_t first, std::int64_t size, const real* theta, const real* before,
                     real kappa, std::byte* stored) {
  static const std::string label = "carousel::train::store_predicted";
  for_each_run(ranges, first, size,
               [&](std::int64_t from, std::int64_t count, DataType type, std::int64_t to) {
                 const auto store = [&](auto* numbers) {
                   Kokkos::parallel_for(label, range(exec, count),
                                        Prediction<std::remove_pointer_t<decltype(numbers)>>{
                                            theta + from, before + from, kappa, numbers});
                 };
                 if (type == DataType::full)
                   store(reinterpret_cast<real*>(stored + to));
                 else
                   store(reinterpret_cast<Bfloat16*>(stored + to));
               });
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
