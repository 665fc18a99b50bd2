// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/machine.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/deck/row.hpp"
#include "core/plan/rule.hpp"

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

double scatter_seconds(const Machine& machine, std::span<const int> devices, std::int64_t bytes) {
  if (devices.size() < 2) return 0;
  const SlowestLink link(machine, devices);
  const auto p = static_cast<double>(devices.size());
  return std::ceil(std::log2(p)) * link.latency +
         (p - 1) / p * static_cast<double>(bytes) / link.bandwidth;
}

double chain_seconds(const Machine& machine, std::span<const int> devices, std::int64_t bytes) {
  if (devices.size() < 2) return 0;
  const SlowestLink link(machine, devices);
  return static_cast<double>(devices.size() - 1) * link.latency +
         static_cast<double>(bytes) / link.bandwidth;
}

std::vector<Row<Machine>> Machine::rows() {
  return {
      key("flops", &Machine::flops, at_least(1, "FLOP/s"), "Speed at which one device computes.",
          required_key),
      key("memory_bandwidth", &Machine::memory_bandwidth, at_least(1, "bytes/s"),
          "Speed at which one device reads and writes its memory.", required_key),
      key("node_latency", &Machine::latency_inside, at_least(0, "seconds"),
          "Latency of a message between two devices of a node.", required_key),
      key("node_bandwidth", &Machine::bandwidth_inside, at_least(1, "bytes/s"),
          "Bandwidth from one device of a node to another, in each direction.", required_key),
      key("network_latency", &Machine::latency_between, at_least(0, "seconds"),
          "Latency of a message between devices of two nodes.", required_key),
      key("network_bandwidth", &Machine::bandwidth_between, at_least(1, "bytes/s"),
          "Bandwidth from a device to one of another node, in each direction.", required_key),
      key("devices_per_node", &Machine::devices_per_node, within(1, most_parallel),
          "Devices of a node. They have consecutive numbers.", required_key),
      key("devices", &Machine::devices, within(1, 1e6),
          "Devices that plan --advise may use. Without this key, as many as the deck's plan has.",
          optional_key),
      key("memory", &Machine::memory, above(0, "bytes"),
          "Memory of a device, which the plans of plan --advise must fit.", optional_key),
      key("jitter", &Machine::jitter, zero_to_one,
          "Relative standard deviation of the time of each action, drawn at random."),
      key("slow_factor", &Machine::slow_factor, within(1, 1000),
          "How many times as long as the others one slow device takes."),
      key("slow_device", &Machine::slow_device, within(0, 1e9), "Number of the slow device."),
  };
}

}  // namespace carousel
