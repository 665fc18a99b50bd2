// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi_transport.hpp"

#include <algorithm>
#include <climits>
#include <utility>

#include "comm/mpi_check.hpp"
#include "core/base/check.hpp"

namespace carousel {
namespace {

using HostBytes = Kokkos::View<std::byte*, HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
using DeviceBytes = Kokkos::View<std::byte*, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

int count_of(std::size_t bytes) {
  CAROUSEL_CHECK(bytes <= INT_MAX, "a message of {} bytes is too large for one MPI call", bytes);
  return static_cast<int>(bytes);
}

}  // namespace

MpiTransport::MpiTransport(MPI_Comm world, int requests, std::size_t message_bytes, Clock clock)
    : world_(world),
      clock_(std::move(clock)),
      requests_(requests, MPI_REQUEST_NULL),
      operations_(requests),
      finished_(requests),
      statuses_(requests) {
  if constexpr (!runs_on_host) {
    staging_ = decltype(staging_)(
        Kokkos::view_alloc("carousel::comm::staging", Kokkos::WithoutInitializing), requests,
        message_bytes);
  }
}

MpiTransport::~MpiTransport() {
  // Only a run that failed leaves something pending; its peers may never answer.
  for (std::size_t k = 0; k < requests_.size(); ++k) {
    const bool point_to_point =
        operations_[k].kind == Kind::post || operations_[k].kind == Kind::send;
    if (requests_[k] == MPI_REQUEST_NULL || !point_to_point) continue;  // no sum can be cancelled
    MPI_Cancel(&requests_[k]);
    MPI_Request_free(&requests_[k]);
  }
}

Request MpiTransport::take(Kind kind, const Message& message) {
  const auto free = std::ranges::find(operations_, Kind::free, &Operation::kind);
  CAROUSEL_CHECK(free != operations_.end(), "more than {} messages pending", operations_.size());
  *free = {kind, message};
  return static_cast<Request>(free - operations_.begin());
}

std::byte* MpiTransport::host_buffer(Request request) {
  if constexpr (runs_on_host) return operations_[request].message.data;
  return &staging_(request, 0);
}

Request MpiTransport::post(const Message& message) {
  const Request request = take(Kind::post, message);
  CAROUSEL_MPI(MPI_Irecv(host_buffer(request), count_of(message.bytes), MPI_BYTE, message.peer,
                         message.tag, world_, &requests_[request]));
  return request;
}

Request MpiTransport::send(const Message& message) {
  const Request request = take(Kind::send, message);
  if constexpr (!runs_on_host)
    Kokkos::deep_copy(HostBytes(host_buffer(request), message.bytes),
                      DeviceBytes(message.data, message.bytes));
  CAROUSEL_MPI(MPI_Isend(host_buffer(request), count_of(message.bytes), MPI_BYTE, message.peer,
                         message.tag, world_, &requests_[request]));
  return request;
}

Request MpiTransport::all_reduce(real* data, std::size_t count) {
  const Request request = take(Kind::all_reduce, {.data = reinterpret_cast<std::byte*>(data),
                                                  .bytes = count * sizeof(real)});
  const Message& message = operations_[request].message;
  if constexpr (!runs_on_host)
    Kokkos::deep_copy(HostBytes(host_buffer(request), message.bytes),
                      DeviceBytes(message.data, message.bytes));
  CAROUSEL_MPI(MPI_Iallreduce(MPI_IN_PLACE, host_buffer(request), count_of(count),
                              sizeof(real) == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT, MPI_SUM,
                              world_, &requests_[request]));
  return request;
}

void MpiTransport::progress() {
  int count = 0;
  const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                finished_.data(), statuses_.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS)
    mpi_failed("MPI_Testsome", code, __FILE__, __LINE__);
  if (count == MPI_UNDEFINED) return;  // nothing is pending
  for (int k = 0; k < count; ++k) {
    // Statuses name errors only when the call says so.
    if (code == MPI_ERR_IN_STATUS && statuses_[k].MPI_ERROR != MPI_SUCCESS)
      mpi_failed("MPI_Testsome", statuses_[k].MPI_ERROR, __FILE__, __LINE__);
    finish(finished_[k], statuses_[k]);
  }
}

void MpiTransport::finish(Request request, const MPI_Status& status) {
  Operation& operation = operations_[request];
  if (operation.kind == Kind::post) {
    int bytes = 0;
    CAROUSEL_MPI(MPI_Get_count(&status, MPI_BYTE, &bytes));
    CAROUSEL_CHECK(static_cast<std::size_t>(bytes) == operation.message.bytes,
                   "{} bytes arrived from rank {}, {} were expected", bytes, operation.message.peer,
                   operation.message.bytes);
  }
  if constexpr (!runs_on_host) {
    if (operation.kind != Kind::send)
      Kokkos::deep_copy(DeviceBytes(operation.message.data, operation.message.bytes),
                        HostBytes(host_buffer(request), operation.message.bytes));
  }
  operation.completed = clock_();
}

std::optional<double> MpiTransport::test(Request request) {
  Operation& operation = operations_[request];
  CAROUSEL_CHECK(operation.kind != Kind::free, "request {} is not pending", request);
  if (!operation.completed) progress();
  if (operation.completed) operation.kind = Kind::free;
  return operation.completed;
}

}  // namespace carousel
