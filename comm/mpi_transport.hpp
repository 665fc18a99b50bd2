// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages of one device over MPI. Common MPI libraries move large messages only inside MPI calls,
// so that somebody has to look at them while the device computes.

#include <mpi.h>

#include <vector>

#include "comm/mpi_groups.hpp"
#include "core/engine/transport.hpp"

namespace carousel {

class MpiTransport final : public Transport {
 public:
  /// Borrows `world`, whose groups have collectives. What messages name is memory that the MPI
  /// library knows. While anything is pending, others may use MPI only if it is
  /// MPI_THREAD_MULTIPLE.
  MpiTransport(MPI_Comm world, MpiGroups groups, int requests, Clock clock);
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;
  ~MpiTransport() override;

  Request post(const Message& message) override;
  Request send(const Message& message) override;
  Request join(const Collective& collective) override;
  void progress() override;
  [[nodiscard]] bool needs_calls() const override { return true; }
  std::optional<double> test(Request request) override;

 private:
  enum class Kind : std::uint8_t { free, post, send, collective };
  struct Operation {
    Kind kind = Kind::free;
    Message message;
    std::optional<double> completed = {};
  };

  Request take(Kind kind, const Message& message);
  void finish(Request request, const MPI_Status& status);

  MPI_Comm world_;
  MpiGroups groups_;
  Clock clock_;
  std::vector<MPI_Request> requests_;  // null where free or complete
  std::vector<Operation> operations_;
  std::vector<int> finished_;
  std::vector<MPI_Status> statuses_;
  std::vector<std::vector<int>> places_;  // [request] where parts of an all-gather begin
};

}  // namespace carousel
