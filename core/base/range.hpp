// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Policies and facts of execution spaces, asked for in ways that take nothing from the heap: Kokkos
// 4 otherwise builds texts and instances behind each launch. Kernels are written elsewhere.

#include <cstdint>

#include "core/base/view.hpp"

namespace carousel {

namespace detail {

/// An integer that Kokkos does not recognise as one: RangePolicy builds the text of a warning about
/// every bound of built-in type, needed or not.
struct Bound {
  std::int64_t value;
  operator std::int64_t() const noexcept { return value; }  // NOLINT(google-explicit-constructor)
};

template <class Space>
[[nodiscard]] int concurrency(const Space& exec) {
  if constexpr (requires { Space::concurrency(exec); })
    return Space::concurrency(exec);  // its default argument would be a new instance
  else
    return exec.concurrency();
}

}  // namespace detail

/// begin ... end - 1 on `exec`. Threads take whole cache lines; without a chunk Kokkos would ask
/// for the concurrency as above.
[[nodiscard]] inline RangePolicy range(const ExecutionSpace& exec, std::int64_t begin,
                                       std::int64_t end) {
  return {exec, detail::Bound{begin}, detail::Bound{end}, Kokkos::ChunkSize(64)};
}
/// 0 ... size - 1 on `exec`.
[[nodiscard]] inline RangePolicy range(const ExecutionSpace& exec, std::int64_t size) {
  return range(exec, 0, size);
}

/// 0 ... size - 1 on `exec`, each of which is work enough for a thread of a host to take alone.
[[nodiscard]] inline RangePolicy pieces(const ExecutionSpace& exec, std::int64_t size) {
  return {exec, detail::Bound{0}, detail::Bound{size}, Kokkos::ChunkSize(runs_on_host ? 1 : 64)};
}

/// Threads that run at the same time.
[[nodiscard]] inline int concurrency(const ExecutionSpace& exec) {
  return detail::concurrency(exec);
}

}  // namespace carousel
