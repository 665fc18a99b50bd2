// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/layers/heap_counter.hpp"

#include <cstdlib>
#include <new>

namespace {

thread_local bool counting = false;
thread_local int allocations_seen = 0;

void count() {
  if (counting) ++allocations_seen;
}

}  // namespace

// Aligned memory is left out: libgomp takes some at every parallel region of one thread, and Kokkos
// tells of its own. Sanitizers have their own malloc; there, and without glibc's other names of it,
// only C++ counts.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): glibc's names
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

void* malloc(std::size_t size) {
  count();
  return __libc_malloc(size);
}
void* calloc(std::size_t number, std::size_t size) {
  count();
  return __libc_calloc(number, size);
}
void* realloc(void* memory, std::size_t size) {
  count();
  return __libc_realloc(memory, size);
}

}  // extern "C"

#else

void* operator new(std::size_t size) {
  count();
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  count();
  return std::malloc(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}

#endif

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

void HeapCounter::pause() const {
  counting = false;
}

void HeapCounter::go_on() const {
  counting = true;
}

}  // namespace carousel::test
