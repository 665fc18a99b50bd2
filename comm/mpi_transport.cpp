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

int count_of(std::size_t bytes) {
  CAROUSEL_CHECK(bytes <= INT_MAX, "a message of {} bytes is too large for one MPI call", bytes);
  return static_cast<int>(bytes);
}

}  // namespace

MpiTransport::MpiTransport(MPI_Comm world, MpiGroups groups, int requests, Clock clock)
    : world_(world),
      groups_(std::move(groups)),
      clock_(std::move(clock)),
      requests_(requests, MPI_REQUEST_NULL),
      operations_(requests),
      finished_(requests),
      statuses_(requests),
      places_(requests) {
  const std::size_t most = groups_.largest() + 1;
  for (std::vector<int>& places : places_) places.reserve(most);
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
  const bool pending = std::ranges::any_of(
      requests_, [](MPI_Request request) { return request != MPI_REQUEST_NULL; });
  if (pending) groups_.give_up();
}

Request MpiTransport::take(Kind kind, const Message& message) {
  const auto free = std::ranges::find(operations_, Kind::free, &Operation::kind);
  CAROUSEL_CHECK(free != operations_.end(), "more than {} messages pending", operations_.size());
  *free = {kind, message};
  return static_cast<Request>(free - operations_.begin());
}

Request MpiTransport::post(const Message& message) {
  const Request request = take(Kind::post, message);
  CAROUSEL_MPI(MPI_Irecv(message.data, count_of(message.bytes), MPI_BYTE, message.peer, message.tag,
                         world_, &requests_[request]));
  return request;
}

Request MpiTransport::send(const Message& message) {
  const Request request = take(Kind::send, message);
  CAROUSEL_MPI(MPI_Isend(message.data, count_of(message.bytes), MPI_BYTE, message.peer, message.tag,
                         world_, &requests_[request]));
  return request;
}

Request MpiTransport::join(const Collective& collective) {
  const Request request = take(Kind::collective, {});
  const MpiGroups::Group& group = groups_[collective.group];
  const auto found = std::ranges::find(group.members, collective.root) - group.members.begin();
  const int root = collective.root < 0 ? -1 : static_cast<int>(found);
  int own = 0;
  CAROUSEL_MPI(MPI_Comm_rank(group.ranks, &own));
  real* const data = collective.data;
  const int count = count_of(collective.count);
  MPI_Request* handle = &requests_[request];
  const MPI_Datatype type = sizeof(real) == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT;
  switch (collective.kind) {
    case Collective::Kind::all_reduce:
      CAROUSEL_MPI(MPI_Iallreduce(MPI_IN_PLACE, data, count, type, MPI_SUM, group.ranks, handle));
      break;
    case Collective::Kind::reduce:
      CAROUSEL_MPI(MPI_Ireduce(own == root ? MPI_IN_PLACE : data, own == root ? data : nullptr,
                               count, type, MPI_SUM, root, group.ranks, handle));
      break;
    case Collective::Kind::broadcast:
      CAROUSEL_MPI(MPI_Ibcast(data, count, type, root, group.ranks, handle));
      break;
    case Collective::Kind::reduce_scatter:
      CAROUSEL_MPI(MPI_Ireduce_scatter(collective.from == data ? MPI_IN_PLACE : collective.from,
                                       data, collective.parts.data(), type, MPI_SUM, group.ranks,
                                       handle));
      break;
    case Collective::Kind::all_gather: {
      std::vector<int>& places = places_[request];
      places.assign(1, 0);
      for (const int part : collective.parts) places.push_back(places.back() + part);
      CAROUSEL_MPI(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, data, collective.parts.data(),
                                   places.data(), MPI_BYTE, group.ranks, handle));
      break;
    }
  }
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
  operation.completed = clock_();
}

std::optional<double> MpiTransport::test(Request request) {
  Operation& operation = operations_[request];
  CAROUSEL_CHECK(operation.kind != Kind::free, "request {} is not pending", request);
  if (!operation.completed) return std::nullopt;
  operation.kind = Kind::free;
  return operation.completed;
}

}  // namespace carousel
