// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/machine.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace carousel {

namespace {

/// What slows the ring that the devices make down. Libraries make a ring for every device of a
/// node, each of which leaves the node elsewhere and takes its part of the bytes.
struct SlowestLink {
  double latency = 0;
  double bandwidth = std::numeric_limits<double>::infinity();

  SlowestLink(const Machine& machine, std::span<const int> devices) {
    const int rings = fewest_on_a_node(machine, devices);
    for (std::size_t k = 0; k < devices.size(); ++k) {
      const int from = devices[k];
      const int to = devices[(k + 1) % devices.size()];
      latency = std::max(latency, machine.latency(from, to));
      bandwidth = std::min(bandwidth,
                           machine.bandwidth(from, to) * (machine.same_node(from, to) ? 1 : rings));
    }
  }

 private:
  static int fewest_on_a_node(const Machine& machine, std::span<const int> devices) {
    std::map<int, int> counts;
    for (const int device : devices) ++counts[machine.node(device)];
    auto fewest = static_cast<int>(devices.size());
    for (const auto& [node, count] : counts) fewest = std::min(fewest, count);
    return fewest;
  }
};

}  // namespace

double all_reduce_seconds(const Machine& machine, std::span<const int> devices,
                          std::int64_t bytes) {
  if (devices.size() < 2) return 0;
  const SlowestLink link(machine, devices);
  const auto p = static_cast<double>(devices.size());
  const double seconds = static_cast<double>(bytes) / link.bandwidth;
  const double ring = 2 * (p - 1) * (link.latency + seconds / p);
  const double trees = 2 * (std::ceil(std::log2(p)) * link.latency + seconds);
  return std::min(ring, trees);
}

double chain_seconds(const Machine& machine, std::span<const int> devices, std::int64_t bytes) {
  if (devices.size() < 2) return 0;
  const SlowestLink link(machine, devices);
  return static_cast<double>(devices.size() - 1) * link.latency +
         static_cast<double>(bytes) / link.bandwidth;
}

}  // namespace carousel
