// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The life of MPI in a process: start, agreement of all ranks outside training, and the end, good
// or bad. No other part of Carousel starts or ends MPI.

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/mpi_groups.hpp"
#include "core/base/check.hpp"
#include "core/engine/transport.hpp"

namespace carousel {

/// An error that every rank has learned of, so that all may end in order and one rank may speak.
class AgreedError : public Error {
 public:
  using Error::Error;
};

class MpiSession {
 public:
  MpiSession(int* argc, char*** argv);
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  /// Ends MPI, at most for as long as will_end() says.
  ~MpiSession();

  /// How the process is going to end, all said and written. Some libraries wait at the end of MPI
  /// for a peer that has nothing more to say (MPICH 4.0 with UCX over TCP, one run in twenty);
  /// after `seconds` (0: any time) the process then ends with this code.
  void will_end(ExitCode code, double seconds) {
    code_ = code;
    end_seconds_ = seconds;
  }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  /// Ranks that share this rank's memory, and so its cores.
  [[nodiscard]] int ranks_on_node() const { return ranks_on_node_; }
  /// The first and the last of them.
  [[nodiscard]] std::pair<int, int> ends_on_node() const { return ends_on_node_; }
  /// [rank] the first rank that shares its memory. Collective.
  [[nodiscard]] std::vector<int> nodes() const;
  /// Cores that those may use together, whether a launcher bound each to some or none; 0: unknown.
  [[nodiscard]] int cores_on_node() const { return cores_on_node_; }

  /// Whether the library says that it takes memory of NVIDIA's GPUs.
  [[nodiscard]] static bool takes_gpu_memory();

  /// What each of those says, in the order of their ranks, and which of them this rank is.
  struct NodeTexts {
    std::vector<std::string> texts;
    int own = 0;
  };
  /// Collective over the ranks of the node.
  [[nodiscard]] NodeTexts texts_of_node(const std::string& text) const;
  /// How many of those have the same text as this rank, itself included. Collective.
  [[nodiscard]] int ranks_on_node_with(const std::string& text) const;

  /// Runs `action` on every rank. When any rank fails, throws on every rank an AgreedError with
  /// code and text of the lowest failing rank. Collective; for set-up and between segments only.
  void together(const std::function<void()>& action) const;
  /// The least number of any rank on every rank. Collective.
  [[nodiscard]] std::int64_t least(std::int64_t value) const;
  /// In place of each number, its sum over all ranks. Collective.
  void sum(std::span<std::uint64_t> values) const;
  /// The bytes of rank 0 on every rank. Collective.
  void from_first(std::span<std::byte> bytes) const;

  /// Groups of ranks for collectives. Collective itself, before anything is pending.
  [[nodiscard]] MpiGroups groups(const std::vector<std::vector<int>>& ranks) const {
    return {world_, ranks};
  }
  /// Messages of this rank as one device of a plan, with room for `requests` pending operations.
  /// Waits for nobody.
  [[nodiscard]] std::unique_ptr<Transport> transport(MpiGroups groups, int requests,
                                                     Clock clock) const;

  /// Ends all ranks at once, for errors that only one rank knows of.
  [[noreturn]] void abort(ExitCode code) const;

 private:
  [[nodiscard]] MPI_Comm node() const;  // a new one, of the ranks that share memory
  void learn_node();

  MPI_Comm world_ = MPI_COMM_NULL;  // own duplicate
  int rank_ = 0;
  int size_ = 1;
  int ranks_on_node_ = 1;
  std::pair<int, int> ends_on_node_ = {};
  int cores_on_node_ = 0;
  ExitCode code_ = ExitCode::internal;
  double end_seconds_ = 20;
};

}  // namespace carousel
