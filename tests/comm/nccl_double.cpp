// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/comm/nccl_double.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/check.hpp"

namespace {

using carousel::test::NcclCalls;

struct Message {
  bool sends = false;
  void* data = nullptr;
  int bytes = 0;
  int peer = 0;
  MPI_Comm ranks = MPI_COMM_NULL;
};

/// A collective that a group has begun to describe: it starts when the group ends.
struct Sum {
  std::vector<std::byte> own = {};  // of a reduction, what this rank adds
  std::function<void(const std::byte* own, MPI_Request*)> start;
};

NcclCalls calls;                    // NOLINT: one library per process, as NCCL is
std::vector<Message> group;         // NOLINT
std::vector<Sum> sums;              // NOLINT
int depth = 0;                      // NOLINT
ncclResult_t broken = ncclSuccess;  // NOLINT

int size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return 1;
    case ncclFloat32:
      return 4;
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

/// Cores may be shared with the very rank that this one waits for.
std::vector<MPI_Status> wait_for(std::vector<MPI_Request>& requests) {
  std::vector<MPI_Status> statuses(requests.size());
  int done = 0;
  while (true) {
    PMPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, statuses.data());
    if (done != 0) return statuses;
    std::this_thread::yield();
  }
}

/// Starts all collectives, in order, and waits for all.
ncclResult_t run_sums() {
  std::vector<MPI_Request> requests(sums.size());
  for (std::size_t k = 0; k < sums.size(); ++k) sums[k].start(sums[k].own.data(), &requests[k]);
  (void)wait_for(requests);
  sums.clear();
  return ncclSuccess;
}

/// Starts a collective now, or when its group ends.
ncclResult_t add_sum(Sum sum) {
  sums.push_back(std::move(sum));
  return depth > 0 ? ncclSuccess : run_sums();
}

std::vector<std::byte> copy_of(const void* numbers, std::size_t count, ncclDataType_t type) {
  const auto* bytes = static_cast<const std::byte*>(numbers);
  return {bytes, bytes + count * static_cast<std::size_t>(size_of(type))};
}

/// Starts all messages of a group, in order, and waits for all.
ncclResult_t run_group() {
  std::vector<MPI_Request> requests(group.size());
  for (std::size_t k = 0; k < group.size(); ++k) {
    const Message& message = group[k];
    if (message.sends)
      PMPI_Isend(message.data, message.bytes, MPI_BYTE, message.peer, 0, message.ranks,
                 &requests[k]);
    else
      PMPI_Irecv(message.data, message.bytes, MPI_BYTE, message.peer, 0, message.ranks,
                 &requests[k]);
  }
  const std::vector<MPI_Status> statuses = wait_for(requests);
  ++calls.groups;
  calls.largest_group = std::max(calls.largest_group, static_cast<int>(group.size()));
  ncclResult_t result = ncclSuccess;
  for (std::size_t k = 0; k < group.size(); ++k) {
    int bytes = 0;
    PMPI_Get_count(&statuses[k], MPI_BYTE, &bytes);
    if (!group[k].sends && bytes != group[k].bytes) result = ncclInvalidArgument;
  }
  group.clear();
  return result;
}

ncclResult_t add_message(Message message, std::size_t count, ncclDataType_t type, ncclComm_t comm) {
  // NCCL takes messages without bytes and does nothing for them, so that nobody waits.
  if (comm == nullptr || message.data == nullptr || count == 0 || size_of(type) == 0)
    return ncclInvalidArgument;
  message.bytes = static_cast<int>(count) * size_of(type);
  message.ranks = *reinterpret_cast<MPI_Comm*>(comm);
  (message.sends ? calls.counts.sent : calls.counts.posted)[message.peer].add(message.bytes);
  calls.log.push_back(fmt::format("{} {} {} {}", message.sends ? "send" : "receive", message.bytes,
                                  message.sends ? "to" : "from", message.peer));
  group.push_back(message);
  return depth > 0 ? ncclSuccess : run_group();
}

/// The communicator of a collective that may be called now, or null. A group has messages or
/// collectives.
MPI_Comm ranks_of(ncclComm_t comm, ncclDataType_t type, const char* name, std::size_t count) {
  if (comm == nullptr || !group.empty() || size_of(type) == 0) return MPI_COMM_NULL;
  calls.log.push_back(fmt::format("{} {}", name, count));
  return *reinterpret_cast<MPI_Comm*>(comm);
}

MPI_Datatype mpi_type(ncclDataType_t type) {
  if (type == ncclInt8) return MPI_BYTE;
  return type == ncclFloat64 ? MPI_DOUBLE : MPI_FLOAT;
}

ncclComm_t hand_out(MPI_Comm ranks) {
  ++calls.open;
  return reinterpret_cast<ncclComm_t>(new MPI_Comm(ranks));
}

}  // namespace

namespace carousel::test {

const NcclCalls& nccl_calls() {
  return calls;
}
void clear_nccl() {
  const int open = calls.open;
  calls = {};
  calls.open = open;
}
void break_nccl(ncclResult_t error) {
  broken = error;
}

}  // namespace carousel::test

// ---- What stands in nccl.h ----------------------------------------------------------------------

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::strcpy(id->internal, "the world");
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  int world_size = 0;
  int world_rank = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &world_size);
  PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  if (size != world_size || rank != world_rank || std::strcmp(id.internal, "the world") != 0)
    return ncclInvalidArgument;
  MPI_Comm ranks = MPI_COMM_NULL;
  PMPI_Comm_dup(MPI_COMM_WORLD, &ranks);
  *comm = hand_out(ranks);
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made,
                           ncclConfig_t* config) {
  if (config != nullptr) return ncclInvalidArgument;
  ++calls.splits;
  MPI_Comm ranks = MPI_COMM_NULL;
  PMPI_Comm_split(*reinterpret_cast<MPI_Comm*>(comm),
                  color == NCCL_SPLIT_NOCOLOR ? MPI_UNDEFINED : color, key, &ranks);
  *made = ranks == MPI_COMM_NULL ? nullptr : hand_out(ranks);
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  auto* ranks = reinterpret_cast<MPI_Comm*>(comm);
  PMPI_Comm_free(ranks);
  delete ranks;
  --calls.open;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote error" : "an error";
}
const char* ncclGetLastError(ncclComm_t /*comm*/) {
  return "said the double";
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t /*comm*/, ncclResult_t* error) {
  *error = broken;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (depth == 0) return ncclInvalidUsage;
  if (--depth > 0) return ncclSuccess;
  if (!sums.empty()) return run_sums();
  return group.empty() ? ncclSuccess : run_group();
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t /*stream*/) {
  return add_message({.sends = true, .data = const_cast<void*>(data), .peer = peer}, count, type,
                     comm);
}
ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t /*stream*/) {
  return add_message({.data = data, .peer = peer}, count, type, comm);
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t /*stream*/) {
  MPI_Comm ranks = ranks_of(comm, type, "all_reduce", count);
  if (ranks == MPI_COMM_NULL || from != to || operation != ncclSum) return ncclInvalidArgument;
  calls.counts.all_reduces.add(static_cast<std::int64_t>(count) * size_of(type));
  return add_sum({.start = [=](const std::byte*, MPI_Request* request) {
    PMPI_Iallreduce(MPI_IN_PLACE, to, static_cast<int>(count), mpi_type(type), MPI_SUM, ranks,
                    request);
  }});
}

ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int root, ncclComm_t comm, cudaStream_t /*stream*/) {
  MPI_Comm ranks = ranks_of(comm, type, "reduce", count);
  if (ranks == MPI_COMM_NULL || operation != ncclSum) return ncclInvalidArgument;
  calls.counts.reduces.add(static_cast<std::int64_t>(count) * size_of(type));
  // On the root, too, from memory of its own: MPICH 4.0 has no good MPI_Reduce in place.
  return add_sum(
      {.own = copy_of(from, count, type), .start = [=](const std::byte* own, MPI_Request* request) {
         PMPI_Ireduce(own, to, static_cast<int>(count), mpi_type(type), MPI_SUM, root, ranks,
                      request);
       }});
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t /*stream*/) {
  MPI_Comm ranks = ranks_of(comm, type, "broadcast", count);
  if (ranks == MPI_COMM_NULL || from != to) return ncclInvalidArgument;
  calls.counts.broadcasts.add(static_cast<std::int64_t>(count) * size_of(type));
  return add_sum({.start = [=](const std::byte*, MPI_Request* request) {
    PMPI_Ibcast(to, static_cast<int>(count), mpi_type(type), root, ranks, request);
  }});
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  PMPI_Comm_rank(*reinterpret_cast<MPI_Comm*>(comm), rank);
  return ncclSuccess;
}

ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t /*stream*/) {
  MPI_Comm ranks = ranks_of(comm, type, "reduce_scatter", count);
  if (ranks == MPI_COMM_NULL || operation != ncclSum) return ncclInvalidArgument;
  int rank = 0;
  int size = 0;
  PMPI_Comm_rank(ranks, &rank);
  PMPI_Comm_size(ranks, &size);
  const std::size_t all = count * static_cast<std::size_t>(size);
  // Apart from what is summed, or in the own place there.
  const std::less<const void*> before;
  const auto bytes = static_cast<std::size_t>(size_of(type));
  const auto* const first = static_cast<const std::byte*>(from);
  const bool apart = !before(first, static_cast<const std::byte*>(to) + count * bytes) ||
                     !before(to, first + all * bytes);
  if (!apart && to != first + static_cast<std::size_t>(rank) * count * bytes)
    return ncclInvalidArgument;
  calls.counts.reduce_scatters.add(static_cast<std::int64_t>(all) * size_of(type));
  return add_sum(
      {.own = copy_of(from, all, type), .start = [=](const std::byte* own, MPI_Request* request) {
         PMPI_Ireduce_scatter_block(own, to, static_cast<int>(count), mpi_type(type), MPI_SUM,
                                    ranks, request);
       }});
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t /*stream*/) {
  MPI_Comm ranks = ranks_of(comm, type, "all_gather", count);
  if (ranks == MPI_COMM_NULL) return ncclInvalidArgument;
  int rank = 0;
  int size = 0;
  PMPI_Comm_rank(ranks, &rank);
  PMPI_Comm_size(ranks, &size);
  const std::size_t bytes = count * static_cast<std::size_t>(size_of(type));
  if (from != static_cast<std::byte*>(to) + static_cast<std::size_t>(rank) * bytes)
    return ncclInvalidArgument;
  calls.counts.all_gathers.add(static_cast<std::int64_t>(bytes) * size);
  return add_sum({.start = [=](const std::byte*, MPI_Request* request) {
    PMPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to, static_cast<int>(count), mpi_type(type),
                    ranks, request);
  }});
}
