// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// `[engine]`: how the kernels run.

#include <cstdint>
#include <vector>

#include "core/base/words.hpp"
#include "core/model/kernel_choice.hpp"

namespace carousel {

template <class Struct>
struct Row;

/// Threads of a process: as many as Kokkos' OpenMP backend has room for.
inline constexpr int most_threads = 512;

/// Whose kernels compute layers that a vendor's libraries have, too.
enum class VendorUse : std::uint8_t { automatic, none };
constexpr auto words_of(VendorUse) {
  return all_words<VendorUse>("auto", "none");
}

struct EngineConfig {
  int threads = 0;       // 0: what the environment gives
  bool winograd = true;  // where it is faster
  Recompute recompute = Recompute::cheap;
  DataType precision = DataType::full;
  ProductOrder products = ProductOrder::pairs;
  VendorUse vendor = VendorUse::automatic;
  int queues = 1;   // of a device
  int device = -1;  // GPU of a process without a launcher; -1: whatever fits

  [[nodiscard]] static std::vector<Row<EngineConfig>> rows();
};

}  // namespace carousel
