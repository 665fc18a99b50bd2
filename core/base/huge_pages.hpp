// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Large pages for what kernels read again and again: a page of 4 KiB holds few rows of a matrix,
// and the addresses of all of them fit no processor.

#include <sys/mman.h>

#include <cstdint>

#include "core/base/align.hpp"

namespace carousel {

/// Asks Linux to back memory of the host that nobody has touched yet by huge pages (madvise(2)),
/// where whole ones fit. It says yes where transparent huge pages are "always" or "madvise"; where
/// it does not, memory is as it was.
inline void prefer_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::int64_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr std::int64_t page = std::int64_t{2} << 20;
  const auto address = reinterpret_cast<std::intptr_t>(memory);
  const std::int64_t before = align_up(address, page) - address;
  const std::int64_t whole = (bytes - before) / page * page;
  if (whole > 0)
    madvise(static_cast<char*>(memory) + before, static_cast<std::size_t>(whole), MADV_HUGEPAGE);
#endif
}

}  // namespace carousel
