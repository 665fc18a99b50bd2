// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What kernels of a layer take beside their time: nothing. Whose the launches are the caller knows.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/layers/heap_counter.hpp"
#include "tests/layers/kokkos_watch.hpp"

namespace carousel::test {

/// The launches of `run()`, which may neither allocate nor fence.
template <class Run>
[[nodiscard]] std::vector<Launch> launches_alone(const Run& run) {
  run();  // scratch memory of Kokkos and texts of labels come into being here
  {
    const HeapCounter heap;
    run();
    EXPECT_EQ(heap.allocations(), 0);
  }
  {
    const KokkosWatch watch(KokkosWatch::allocation + KokkosWatch::fence);
    run();
    EXPECT_EQ(watch.allocations(), std::vector<Allocation>());
    EXPECT_EQ(watch.fences(), std::vector<std::string>());
  }
  const KokkosWatch watch(KokkosWatch::launch);
  run();
  return watch.launches();
}

}  // namespace carousel::test
