// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/pinned_memory.hpp"

#include "core/base/view.hpp"

namespace carousel {
namespace {

/// Pages are aligned to more than anything asks for.
class PinnedMemory final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t bytes, std::size_t /*alignment*/) override {
    return Kokkos::kokkos_malloc<Kokkos::SharedHostPinnedSpace>("carousel::train::pinned", bytes);
  }
  void do_deallocate(void* memory, std::size_t /*bytes*/, std::size_t /*alignment*/) override {
    Kokkos::kokkos_free<Kokkos::SharedHostPinnedSpace>(memory);
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }
};

}  // namespace

std::pmr::memory_resource* pinned_memory() {
  if constexpr (runs_on_host) return std::pmr::get_default_resource();
  static PinnedMemory memory;
  return &memory;
}

}  // namespace carousel
