// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/machine.hpp"

#include <algorithm>

namespace carousel {

double all_reduce_seconds(const Machine& machine, std::span<const int> devices,
                          std::int64_t bytes) {
  const auto p = static_cast<double>(devices.size());
  double hop = 0;
  for (std::size_t k = 0; k < devices.size(); ++k) {
    const int from = devices[k];
    const int to = devices[(k + 1) % devices.size()];
    hop = std::max(hop, machine.latency(from, to) +
                            static_cast<double>(bytes) / (p * machine.bandwidth(from, to)));
  }
  return 2 * (p - 1) * hop;
}

double chain_seconds(const Machine& machine, std::span<const int> devices, std::int64_t bytes) {
  if (devices.size() < 2) return 0;
  double latency = 0;
  double slowest = 0;
  for (std::size_t k = 0; k < devices.size(); ++k) {
    const int from = devices[k];
    const int to = devices[(k + 1) % devices.size()];
    latency = std::max(latency, machine.latency(from, to));
    slowest = std::max(slowest, static_cast<double>(bytes) / machine.bandwidth(from, to));
  }
  return static_cast<double>(devices.size() - 1) * latency + slowest;
}

}  // namespace carousel
