// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts what the calling thread takes from the heap through operator new, which heap_counter.cpp
// replaces in the programs that link it. It does not see malloc called from C libraries.

namespace carousel::test {

/// Counts while it lives; one at a time per thread.
class HeapCounter {
 public:
  HeapCounter();
  HeapCounter(const HeapCounter&) = delete;
  HeapCounter& operator=(const HeapCounter&) = delete;
  ~HeapCounter();

  [[nodiscard]] int allocations() const;
};

}  // namespace carousel::test
