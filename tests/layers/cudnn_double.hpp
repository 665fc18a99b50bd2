// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Another library in cuDNN's place, for tests without GPUs: cudnn_double.cpp has the functions of
// its backend that the C++ front end calls, and computes the graphs that this describes with host
// memory, number by number, in double. What cuDNN would take amiss, such as memory that is aligned
// less than was promised, ends in an error.

#include <cudnn.h>

#include <string>
#include <vector>

namespace carousel::test {

struct CudnnCalls {
  int open = 0;                      // handles and descriptors that are not destroyed
  int plans = 0;                     // that were finalised
  std::vector<std::size_t> engines;  // that ran, one per plan
  std::vector<std::string>
      runs;  // "forward 2x16x8x8 32x16x3x3 = 2x32x8x8 bf16", operation by operation
};
[[nodiscard]] const CudnnCalls& cudnn_calls();

/// One of the engines that a heuristic offers for a graph, the best one first.
struct CudnnEngine {
  std::int64_t workspace = 0;
  std::vector<cudnnBackendNumericalNote_t> notes = {};
};

/// Takes back what tests have asked for: one engine for all, of no workspace.
void clear_cudnn();
void offer_engines(std::vector<CudnnEngine> engines);
/// No engine for graphs with this operation from now on, or only for those whose result is of the
/// type given.
void refuse_operation(cudnnBackendDescriptorType_t operation);
void refuse_results(cudnnBackendDescriptorType_t operation, cudnnDataType_t type);

}  // namespace carousel::test
