// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Host memory that an accelerator copies from while the host goes on.

#include <memory_resource>

namespace carousel {

/// Of hosts without one, any memory. Before Kokkos ends.
[[nodiscard]] std::pmr::memory_resource* pinned_memory();

}  // namespace carousel
