// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// NCCL of a run with one GPU per rank: its communicators, and the queue whose messages the GPU
// itself works off. MPI starts it and is not needed while the devices train.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/mpi_session.hpp"
#include "core/base/view.hpp"
#include "core/engine/queue.hpp"

namespace carousel {

class NcclSession {
 public:
  /// What of the plan it serves.
  struct Spec {
    std::vector<std::vector<int>> groups;  // of devices that have collectives
    std::vector<int> peers;                // of this device, which have it for a peer, too
    std::vector<int> nodes;                // [rank] its node; empty where no stage is cut
  };

  /// Collective over all ranks. Makes the communicators and sends a first message over every
  /// connection, so that no step waits for that. Throws Error(usage) in a build without NCCL,
  /// Error(peer_lost) where it does not reach a rank.
  NcclSession(const MpiSession& session, const ExecutionSpace& exec, Spec spec);
  NcclSession(const NcclSession&) = delete;
  NcclSession& operator=(const NcclSession&) = delete;
  /// Leaves the communicators to the end of the process: after a failure nobody can close them.
  ~NcclSession();

  /// Closes the communicators when all ranks are at an end.
  void close();

  /// The only queue of this process, which the session outlives; `requests` may be pending at once.
  [[nodiscard]] std::unique_ptr<CommunicationQueue> queue(int requests, Clock clock);

  /// What went wrong beside all calls, for any thread; empty: nothing.
  [[nodiscard]] std::string failure() const;

 private:
  struct Communicators;
  class Queue;

  void warm(const std::vector<int>& peers);

  ExecutionSpace exec_;  // a stream of its own
  std::unique_ptr<Communicators> all_;
};

}  // namespace carousel
