// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/layers/heap_counter.hpp"

#include <cstdlib>
#include <new>

namespace {

thread_local bool counting = false;
thread_local int allocations_seen = 0;

}  // namespace

void* operator new(std::size_t size) {
  if (counting) ++allocations_seen;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}

namespace carousel::test {

HeapCounter::HeapCounter() {
  allocations_seen = 0;
  counting = true;
}

HeapCounter::~HeapCounter() {
  counting = false;
}

int HeapCounter::allocations() const {
  return allocations_seen;
}

}  // namespace carousel::test
