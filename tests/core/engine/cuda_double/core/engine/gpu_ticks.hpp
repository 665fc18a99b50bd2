// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// In the place of core/engine/gpu_ticks.hpp: the clock of a GPU, which a test sets.

#include <cstdint>

#include "tests/core/engine/cuda_double.hpp"

namespace carousel {

inline std::uint64_t gpu_ticks() {
  return test::gpu().ticks;
}

}  // namespace carousel
