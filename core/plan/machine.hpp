// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the planner has to know of a cluster: how fast a device computes and how fast two devices
// exchange messages. It names no hardware and measures nothing.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace carousel {

template <class Struct>
struct Row;

/// The `[machine]` table of a deck. Device d is on node d / devices_per_node; every device has a
/// link of its own, which sends and receives at the same time.
struct Machine {
  double flops = 0;              // of one device, FLOP/s
  double memory_bandwidth = 0;   // of one device, bytes/s
  double latency_inside = 0;     // of a message inside a node, seconds
  double bandwidth_inside = 0;   // bytes/s in each direction
  double latency_between = 0;    // of a message between nodes, seconds
  double bandwidth_between = 0;  // bytes/s in each direction
  int devices_per_node = 1;
  int devices = 0;    // how many there are; 0: not said
  double memory = 0;  // of one device, bytes; 0: not said
  double jitter = 0;  // of every action, see SimulationInput
  double slow_factor = 1;
  int slow_device = 0;

  [[nodiscard]] static std::vector<Row<Machine>> rows();

  bool operator==(const Machine&) const = default;

  [[nodiscard]] int node(int device) const { return device / devices_per_node; }
  [[nodiscard]] bool same_node(int a, int b) const { return node(a) == node(b); }
  [[nodiscard]] double latency(int a, int b) const {
    return same_node(a, b) ? latency_inside : latency_between;
  }
  [[nodiscard]] double bandwidth(int a, int b) const {
    return same_node(a, b) ? bandwidth_inside : bandwidth_between;
  }
};

/// The same devices with links that cost nothing.
[[nodiscard]] inline Machine with_ideal_links(Machine machine) {
  machine.latency_inside = machine.latency_between = 0;
  machine.bandwidth_inside = machine.bandwidth_between = std::numeric_limits<double>::infinity();
  return machine;
}

/// Seconds of an all-reduce of `bytes` over p devices in the order given, by whichever is faster,
/// as NCCL chooses, where all devices of a node share what leaves it: a ring, around which every
/// piece of bytes / p goes twice (Patarasuk & Yuan 2009, doi 10.1016/j.jpdc.2008.09.002), or two
/// trees of nodes, each for one half of the bytes, up and down, with the devices of a node in a
/// chain (Sanders, Speck & Traeff 2009, doi 10.1016/j.parco.2009.09.001), which between two nodes
/// sends half as many bytes as a ring.
[[nodiscard]] double all_reduce_seconds(const Machine& machine, std::span<const int> devices,
                                        std::int64_t bytes);

/// Seconds of a reduce-scatter or an all-gather of `bytes` in all, of which every device sends
/// (p-1) / p: once around the ring, with all its latencies. Where every device has a node of its
/// own, by halves of what is left, in log2(p) messages (Thakur et al. 2005, doi
/// 10.1177/1094342005051521); NCCL's parallel aggregated trees know no other nodes either. Where
/// several nodes have as many devices each, around the devices of every node, and around one of
/// each node, in as many rings as a node has devices, as NcclSession does.
[[nodiscard]] double scatter_seconds(const Machine& machine, std::span<const int> devices,
                                     std::int64_t bytes);

/// Seconds of a broadcast or a reduction of `bytes` along the same ring, in many small pieces that
/// follow each other: the bandwidth of one hop and the latencies of all.
[[nodiscard]] double chain_seconds(const Machine& machine, std::span<const int> devices,
                                   std::int64_t bytes);

}  // namespace carousel
