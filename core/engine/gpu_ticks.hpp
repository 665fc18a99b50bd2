// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The clock of a GPU, for kernels.

#include <cstdint>

#include "core/base/view.hpp"

namespace carousel {

/// Nanoseconds since some beginning; nothing on hosts.
KOKKOS_INLINE_FUNCTION std::uint64_t gpu_ticks() {
  std::uint64_t ticks = 0;
#ifdef KOKKOS_ENABLE_CUDA
  KOKKOS_IF_ON_DEVICE((asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ticks));))
#endif
  return ticks;
}

}  // namespace carousel
