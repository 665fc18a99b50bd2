// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Copies and waits on an execution space that cost no more than they must: on the host Kokkos 4
// builds texts for either and copies with kernels of its own names. Computes nothing: it moves
// numbers, also from one storage type to another.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "core/base/bfloat16.hpp"
#include "core/base/range.hpp"
#include "core/base/view.hpp"

namespace carousel {

/// Times that finish() was called by this thread, for tests: on hosts nothing else shows it.
inline thread_local std::int64_t finished = 0;

/// Waits for all work on `exec`. On the host a kernel has ended when its launch returns.
inline void finish(const ExecutionSpace& exec, const char* label) {
  ++finished;
  if constexpr (!runs_on_host) exec.fence(label);
}

/// Enqueues a copy between memories of the spaces given; both ends must stay until finish().
template <class ToSpace, class FromSpace>
void copy(const ExecutionSpace& exec, void* to, const void* from, std::size_t bytes) {
  using To = Kokkos::View<std::byte*, ToSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  using From = Kokkos::View<const std::byte*, FromSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  if (bytes == 0) return;
  if constexpr (runs_on_host)
    std::memcpy(to, from, bytes);
  else
    Kokkos::deep_copy(exec, To(static_cast<std::byte*>(to), bytes),
                      From(static_cast<const std::byte*>(from), bytes));
}

/// Enqueues to = from in device memory, exactly.
inline void expand(const ExecutionSpace& exec, const Bfloat16* from, real* to, std::int64_t size) {
  static const std::string label = "carousel::base::expand";
  Kokkos::parallel_for(
      label, range(exec, size),
      KOKKOS_LAMBDA(std::int64_t k) { to[k] = static_cast<real>(to_float(from[k])); });
}

/// Enqueues to = from in device memory, rounded.
inline void shorten(const ExecutionSpace& exec, const real* from, Bfloat16* to, std::int64_t size) {
  static const std::string label = "carousel::base::shorten";
  Kokkos::parallel_for(
      label, range(exec, size),
      KOKKOS_LAMBDA(std::int64_t k) { to[k] = to_bfloat16(static_cast<float>(from[k])); });
}

}  // namespace carousel
