// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the engine gets the little memory that it asks for: once, and much at a time.

#include <cstdint>
#include <string>

#include "core/base/huge_pages.hpp"
#include "core/base/view.hpp"

namespace carousel {

/// Enqueued on `exec`.
template <class T>
void put_zeros(const ExecutionSpace& exec, const Kokkos::View<T*, MemorySpace>& view) {
  Kokkos::parallel_for(
      "carousel::base::zeros", RangePolicy(exec, 0, static_cast<std::int64_t>(view.size())),
      KOKKOS_LAMBDA(std::int64_t i) { view(i) = T{}; });
}

/// A view of `count` zeros, enqueued on `exec`; on hosts, of huge pages where there are such.
template <class T>
[[nodiscard]] Kokkos::View<T*, MemorySpace> zeros(const ExecutionSpace& exec,
                                                  const std::string& label, std::int64_t count) {
  Kokkos::View<T*, MemorySpace> view(Kokkos::view_alloc(exec, label, Kokkos::WithoutInitializing),
                                     count);
  if constexpr (runs_on_host) prefer_huge_pages(view.data(), count * std::int64_t{sizeof(T)});
  put_zeros(exec, view);
  return view;
}

}  // namespace carousel
