// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a profiler sees of Kokkos: launches, allocations and fences, through the callbacks of Kokkos
// Tools. It looks on and changes nothing but the time.

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/view.hpp"

namespace carousel::test {

struct Launch {
  std::string label;
  std::uint32_t device = 0;  // Kokkos Tools' number of the execution space
};

struct Allocation {
  std::string label;
  std::int64_t bytes = 0;
  bool operator==(const Allocation&) const = default;
};

/// Watches while it lives; one at a time. Callbacks have no argument that could carry what they
/// see, so that it lies in static members.
class KokkosWatch {
 public:
  enum Event : unsigned { launch = 1, allocation = 2, fence = 4 };

  /// `events` are one or more, joined by +. Kokkos fences around every watched launch itself, so
  /// that launches and fences do not go together.
  explicit KokkosWatch(unsigned events) {
    namespace tools = Kokkos::Tools::Experimental;
    launches_.clear();
    allocations_.clear();
    fences_.clear();
    if ((events & launch) != 0) set_launch(on_launch);
    if ((events & allocation) != 0) tools::set_allocate_data_callback(on_allocation);
    if ((events & fence) != 0) tools::set_begin_fence_callback(on_fence);
  }
  KokkosWatch(const KokkosWatch&) = delete;
  KokkosWatch& operator=(const KokkosWatch&) = delete;
  ~KokkosWatch() {
    namespace tools = Kokkos::Tools::Experimental;
    set_launch(nullptr);
    tools::set_allocate_data_callback(nullptr);
    tools::set_begin_fence_callback(nullptr);
  }

  [[nodiscard]] const std::vector<Launch>& launches() const { return launches_; }
  [[nodiscard]] const std::vector<Allocation>& allocations() const { return allocations_; }
  [[nodiscard]] const std::vector<std::string>& fences() const { return fences_; }

 private:
  static void set_launch(void (*callback)(const char*, std::uint32_t, std::uint64_t*)) {
    namespace tools = Kokkos::Tools::Experimental;
    tools::set_begin_parallel_for_callback(callback);
    tools::set_begin_parallel_reduce_callback(callback);
    tools::set_begin_parallel_scan_callback(callback);
  }
  static void on_launch(const char* label, std::uint32_t device, std::uint64_t* /*id*/) {
    launches_.push_back({label, device});
  }
  static void on_allocation(Kokkos::Tools::SpaceHandle /*space*/, const char* label,
                            const void* /*data*/, std::uint64_t bytes) {
    // Kokkos::Cuda asks for the scratch memory of teams whenever it launches some, though for none.
    if (!runs_on_host && bytes == 0) return;
    allocations_.push_back({label, static_cast<std::int64_t>(bytes)});
  }
  static void on_fence(const char* label, std::uint32_t /*device*/, std::uint64_t* /*id*/) {
    fences_.emplace_back(label);
  }

  inline static std::vector<Launch> launches_;
  inline static std::vector<Allocation> allocations_;
  inline static std::vector<std::string> fences_;
};

}  // namespace carousel::test
