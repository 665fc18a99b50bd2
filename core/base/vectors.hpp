// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The vector registers of the processor that the engine is built for. Apart from
// core/base/real.hpp, since little code depends on them, and a compiler cache shares all other
// between builds.

#include "core/base/real.hpp"

namespace carousel {

/// Bytes of a vector register; 0 for GPUs, whose kernels have none. The build asks the compiler.
inline constexpr int vector_bytes = CAROUSEL_VECTOR_BYTES;

/// Channels that lie side by side in activations: those of a register, or 1.
inline constexpr int vector_block =
    vector_bytes == 0 ? 1 : vector_bytes / static_cast<int>(sizeof(real));

}  // namespace carousel
