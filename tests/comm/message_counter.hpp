// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts what this rank hands to MPI, seen from below: message_counter.cpp takes the place of MPI's
// functions in the programs that link it and forwards to PMPI. It shares nothing with comm/.

#include <cstdint>
#include <map>

namespace carousel::test {

/// Messages to, or expected from, one rank; or collectives, with the bytes that a rank puts in.
struct Counted {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;

  void add(std::int64_t more) {
    ++messages;
    bytes += more;
  }
  bool operator==(const Counted&) const = default;
};

/// To, or from, all ranks.
[[nodiscard]] inline Counted sum(const std::map<int, Counted>& by_peer) {
  Counted all;
  for (const auto& [peer, counted] : by_peer) {
    all.messages += counted.messages;
    all.bytes += counted.bytes;
  }
  return all;
}

struct MessageCounts {
  std::map<int, Counted> sent;    // by peer
  std::map<int, Counted> posted;  // by peer
  Counted all_reduces;            // MPI_Iallreduce
  Counted reduce_scatters;        // MPI_Ireduce_scatter, of all parts
  Counted all_gathers;            // MPI_Iallgatherv, of all parts
  Counted reduces;                // MPI_Ireduce
  Counted broadcasts;             // MPI_Ibcast
  int others = 0;                 // other collective or blocking calls, which training never makes

  bool operator==(const MessageCounts&) const = default;
};

/// Counts from now on; forgets what was counted.
void start_counting();
[[nodiscard]] const MessageCounts& counted();

}  // namespace carousel::test
