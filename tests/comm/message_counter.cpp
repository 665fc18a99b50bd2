// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/comm/message_counter.hpp"

#include <mpi.h>

#include <numeric>

namespace {

carousel::test::MessageCounts counts;

void count(carousel::test::Counted& sum, int number, MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  sum.add(std::int64_t{number} * size);
}

int sum_of(const int* numbers, MPI_Comm comm) {
  int size = 0;
  PMPI_Comm_size(comm, &size);
  return std::accumulate(numbers, numbers + size, 0);
}

}  // namespace

namespace carousel::test {

void start_counting() {
  counts = {};
}

const MessageCounts& counted() {
  return counts;
}

}  // namespace carousel::test

/// MPI's own name and arguments, passed on as they came.
#define CAROUSEL_COUNT_OTHER(name, parameters, arguments) \
  int MPI_##name parameters {                             \
    ++counts.others;                                      \
    return PMPI_##name arguments;                         \
  }

extern "C" {

int MPI_Isend(const void* data, int number, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request* request) {
  count(counts.sent[peer], number, type);
  return PMPI_Isend(data, number, type, peer, tag, comm, request);
}

int MPI_Irecv(void* data, int number, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request* request) {
  count(counts.posted[peer], number, type);
  return PMPI_Irecv(data, number, type, peer, tag, comm, request);
}

int MPI_Iallreduce(const void* from, void* to, int number, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request) {
  count(counts.all_reduces, number, type);
  return PMPI_Iallreduce(from, to, number, type, op, comm, request);
}

int MPI_Ireduce(const void* from, void* to, int number, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm, MPI_Request* request) {
  count(counts.reduces, number, type);
  return PMPI_Ireduce(from, to, number, type, op, root, comm, request);
}

int MPI_Ireduce_scatter(const void* from, void* to, const int* numbers, MPI_Datatype type,
                        MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  count(counts.reduce_scatters, sum_of(numbers, comm), type);
  return PMPI_Ireduce_scatter(from, to, numbers, type, op, comm, request);
}

int MPI_Iallgatherv(const void* from, int number, MPI_Datatype from_type, void* to,
                    const int* numbers, const int* places, MPI_Datatype type, MPI_Comm comm,
                    MPI_Request* request) {
  count(counts.all_gathers, sum_of(numbers, comm), type);
  return PMPI_Iallgatherv(from, number, from_type, to, numbers, places, type, comm, request);
}

int MPI_Ibcast(void* data, int number, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request* request) {
  count(counts.broadcasts, number, type);
  return PMPI_Ibcast(data, number, type, root, comm, request);
}

CAROUSEL_COUNT_OTHER(Send, (const void* d, int n, MPI_Datatype t, int p, int g, MPI_Comm c),
                     (d, n, t, p, g, c))
CAROUSEL_COUNT_OTHER(Ssend, (const void* d, int n, MPI_Datatype t, int p, int g, MPI_Comm c),
                     (d, n, t, p, g, c))
CAROUSEL_COUNT_OTHER(Recv,
                     (void* d, int n, MPI_Datatype t, int p, int g, MPI_Comm c, MPI_Status* s),
                     (d, n, t, p, g, c, s))
CAROUSEL_COUNT_OTHER(Barrier, (MPI_Comm c), (c))
CAROUSEL_COUNT_OTHER(Ibarrier, (MPI_Comm c, MPI_Request* r), (c, r))
CAROUSEL_COUNT_OTHER(Bcast, (void* d, int n, MPI_Datatype t, int root, MPI_Comm c),
                     (d, n, t, root, c))
CAROUSEL_COUNT_OTHER(Reduce,
                     (const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, int root,
                      MPI_Comm c),
                     (a, b, n, t, o, root, c))
CAROUSEL_COUNT_OTHER(Allreduce,
                     (const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
                     (a, b, n, t, o, c))
CAROUSEL_COUNT_OTHER(Gather,
                     (const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u,
                      int root, MPI_Comm c),
                     (a, n, t, b, m, u, root, c))
CAROUSEL_COUNT_OTHER(Allgather,
                     (const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u,
                      MPI_Comm c),
                     (a, n, t, b, m, u, c))
CAROUSEL_COUNT_OTHER(Alltoall,
                     (const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u,
                      MPI_Comm c),
                     (a, n, t, b, m, u, c))
CAROUSEL_COUNT_OTHER(Comm_dup, (MPI_Comm c, MPI_Comm* d), (c, d))
CAROUSEL_COUNT_OTHER(Comm_split, (MPI_Comm c, int color, int key, MPI_Comm* d), (c, color, key, d))

}  // extern "C"
