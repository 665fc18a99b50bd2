// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages of one device over MPI, point to point. Progress is driven by Testsome, because common
// MPI libraries move large messages only inside MPI calls.

#include <mpi.h>

#include <vector>

#include "core/base/view.hpp"
#include "core/train/transport.hpp"

namespace carousel {

class MpiTransport final : public Transport {
 public:
  /// Borrows `world`; groups of ranks have collectives, so that all ranks of a group come here
  /// together. Where kernels do not run on the host, messages are staged in host memory,
  /// since an MPI library need not know device memory.
  MpiTransport(MPI_Comm world, const std::vector<std::vector<int>>& groups, int requests,
               std::size_t message_bytes, Clock clock);
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;
  ~MpiTransport() override;

  Request post(const Message& message) override;
  Request send(const Message& message) override;
  Request join(const Collective& collective) override;
  std::optional<double> test(Request request) override;
  void progress() override;
  [[nodiscard]] std::int64_t staging_bytes() const override {
    return static_cast<std::int64_t>(staging_.size());
  }

 private:
  enum class Kind : std::uint8_t { free, post, send, collective };
  /// The ranks of a group, numbered in its order.
  struct Group {
    MPI_Comm ranks = MPI_COMM_NULL;  // null where this rank has no part in it
    std::vector<int> devices;
  };
  struct Operation {
    Kind kind = Kind::free;
    Message message;
    bool lands = false;  // whether bytes come here
    std::optional<double> completed = {};
  };

  Request take(Kind kind, const Message& message);
  [[nodiscard]] std::byte* host_buffer(Request request);
  void finish(Request request, const MPI_Status& status);

  MPI_Comm world_;
  std::vector<Group> groups_;
  Clock clock_;
  std::vector<MPI_Request> requests_;  // null where free or complete
  std::vector<Operation> operations_;
  std::vector<int> finished_;
  std::vector<MPI_Status> statuses_;
  Kokkos::View<std::byte**, Kokkos::LayoutRight, Kokkos::SharedHostPinnedSpace> staging_;
};

}  // namespace carousel
