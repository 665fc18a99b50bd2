// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/machine.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/deck/row.hpp"
#include "core/plan/rule.hpp"

namespace carousel {

namespace {

/// The ring that the devices make. Libraries make one for every device of a node, each of which
/// leaves the node elsewhere and takes its part of the bytes.
struct Ring {
  double bandwidth = std::numeric_limits<double>::infinity();  // of the slowest link
  double latency = 0;                                          // of all links but the fastest one
  double devices = 0;
  double nodes = 0;
  bool alike = true;  // all nodes have as many devices of it, side by side

  Ring(const Machine& machine, std::span<const int> members)
      : devices(static_cast<double>(members.size())) {
    std::map<int, int> counts;
    for (const int device : members) ++counts[machine.node(device)];
    nodes = static_cast<double>(counts.size());
    const int rings = std::ranges::min_element(counts, {}, second)->second;
    for (int k = 0; k < std::ssize(members); ++k)
      alike &= machine.same_node(members[k], members[k / rings * rings]);
    alike &= rings * std::ssize(counts) == std::ssize(members);
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < members.size(); ++k) {
      const int from = members[k];
      const int to = members[(k + 1) % members.size()];
      latency += machine.latency(from, to);
      least = std::min(least, machine.latency(from, to));
      bandwidth = std::min(bandwidth,
                           machine.bandwidth(from, to) * (machine.same_node(from, to) ? 1 : rings));
    }
    latency -= least;
  }

 private:
  static int second(const std::pair<const int, int>& count) { return count.second; }
};

double hops_of_a_tree(double leaves) {
  return std::ceil(std::log2(leaves));
}

}  // namespace

double all_reduce_seconds(const Machine& machine, std::span<const int> devices,
                          std::int64_t bytes) {
  if (devices.size() < 2) return 0;
  const Ring ring(machine, devices);
  const double seconds = static_cast<double>(bytes) / ring.bandwidth;
  const double around = ring.latency + (ring.devices - 1) * seconds / ring.devices;
  const double inside = (std::ceil(ring.devices / ring.nodes) - 1) * machine.latency_inside;
  // A node hands on to two others what it has from one; of two, each is the root of one tree.
  const double sent = ring.nodes == 2 ? seconds / 2 : seconds;
  const double up = inside + hops_of_a_tree(ring.nodes) * machine.latency_between + sent;
  return 2 * std::min(around, up);
}

double scatter_seconds(const Machine& machine, std::span<const int> devices, std::int64_t bytes) {
  if (devices.size() < 2) return 0;
  const Ring ring(machine, devices);
  // (p - 1) / p of so many bytes.
  const auto send = [](double p, double all, double bandwidth) {
    return (p - 1) / p * all / bandwidth;
  };
  const auto all = static_cast<double>(bytes);
  const double inside = ring.devices / ring.nodes;
  if (ring.nodes > 1 && inside > 1 && ring.alike) {
    return (inside - 1) * machine.latency_inside + send(inside, all, machine.bandwidth_inside) +
           (ring.nodes - 1) * machine.latency_between +
           send(ring.nodes, all / inside, machine.bandwidth_between);
  }
  const bool halves = ring.nodes == ring.devices;
  const double latency =
      halves ? hops_of_a_tree(ring.devices) * machine.latency_between : ring.latency;
  return latency + send(ring.devices, all, ring.bandwidth);
}

double chain_seconds(const Machine& machine, std::span<const int> devices, std::int64_t bytes) {
  if (devices.size() < 2) return 0;
  const Ring ring(machine, devices);
  return ring.latency + static_cast<double>(bytes) / ring.bandwidth;
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
