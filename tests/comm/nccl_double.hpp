// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Another library in NCCL's place, for tests without GPUs: nccl_double.cpp has its functions, which
// move host memory over MPI before they return. Groups block until all of their peers have come to
// them, which is more than NCCL asks for, and every misuse that NCCL would take ends in an error.

#include <nccl.h>

#include <string>
#include <vector>

#include "tests/comm/message_counter.hpp"

namespace carousel::test {

/// What was asked of NCCL on this rank since clear_nccl(); sizes in bytes.
struct NcclCalls {
  MessageCounts counts;
  int groups = 0;                // of sends and receives
  int largest_group = 0;         // sends and receives in it
  int splits = 0;                // communicators made of others
  int open = 0;                  // communicators
  std::vector<std::string> log;  // "send 3 to 1", "receive 3 from 1", "all_reduce 4", in order
};
[[nodiscard]] const NcclCalls& nccl_calls();
void clear_nccl();

/// Whatever asks for errors of all communicators is told this one.
void break_nccl(ncclResult_t error);

}  // namespace carousel::test
