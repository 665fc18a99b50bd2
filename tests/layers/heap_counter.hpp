// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts how often the calling thread takes from the heap: heap_counter.cpp takes the place of
// malloc in the programs that link it. It does not see what the C library takes for itself.

namespace carousel::test {

/// Counts while it lives; one at a time per thread.
class HeapCounter {
 public:
  HeapCounter();
  HeapCounter(const HeapCounter&) = delete;
  HeapCounter& operator=(const HeapCounter&) = delete;
  ~HeapCounter();

  [[nodiscard]] int allocations() const;

  /// For what a test itself does in between.
  void pause() const;
  void go_on() const;
};

}  // namespace carousel::test
