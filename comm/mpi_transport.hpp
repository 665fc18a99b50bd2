// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages of one device over MPI. Common MPI libraries move large messages only inside MPI calls,
// so a thread makes them while the device computes.

#include <mpi.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/mpi_groups.hpp"
#include "core/base/view.hpp"
#include "core/engine/transport.hpp"

namespace carousel {

class MpiTransport final : public Transport {
 public:
  /// Borrows `world`, whose groups have collectives. Where kernels do not run on the host, messages
  /// are staged in host memory, since an MPI library need not know device memory. While anything is
  /// pending, others may use MPI only if it is MPI_THREAD_MULTIPLE.
  MpiTransport(MPI_Comm world, MpiGroups groups, int requests, std::size_t message_bytes,
               Clock clock);
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;
  ~MpiTransport() override;

  Request post(const Message& message) override;
  Request send(const Message& message) override;
  Request join(const Collective& collective) override;
  std::optional<double> test(Request request) override;
  [[nodiscard]] std::int64_t staging_bytes() const override {
    return static_cast<std::int64_t>(staging_.size());
  }

 private:
  enum class Kind : std::uint8_t { free, post, send, collective };
  struct Operation {
    Kind kind = Kind::free;
    Message message;
    bool lands = false;  // whether bytes come here
    std::optional<double> completed = {};
  };

  /// What the thread does: looks at what is pending, and sleeps while nothing is.
  void drive();
  void look();
  /// Begins a call of the device's own thread.
  [[nodiscard]] std::unique_lock<std::mutex> enter();
  void started();
  Request take(Kind kind, const Message& message);
  [[nodiscard]] std::byte* host_buffer(Request request);
  void finish(Request request, const MPI_Status& status);

  std::mutex mutex_;  // of MPI and of all that follows
  std::condition_variable wake_;
  bool leaving_ = false;
  int pending_ = 0;             // operations that are not complete
  std::exception_ptr failure_;  // of the thread, for the device's own to throw
  MPI_Comm world_;
  MpiGroups groups_;
  Clock clock_;
  std::vector<MPI_Request> requests_;  // null where free or complete
  std::vector<Operation> operations_;
  std::vector<int> finished_;
  std::vector<MPI_Status> statuses_;
  Kokkos::View<std::byte**, Kokkos::LayoutRight, Kokkos::SharedHostPinnedSpace> staging_;
  std::thread thread_;  // last, so that it finds everything else in place
};

}  // namespace carousel
