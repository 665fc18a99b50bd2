// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A GPU in the place of a real one, for tests of what is written for CUDA alone: cuda_double.cpp
// has the calls of CUDA's runtime, and the folder cuda_double headers in the place of those that
// need Kokkos for GPUs. Work on a stream is over when a test says so.

#include <driver_types.h>

#include <cstdint>
#include <vector>

namespace carousel::test {

struct GpuState {
  std::uint64_t ticks = 0;            // its clock, in nanoseconds
  cudaError_t refuses = cudaSuccess;  // why it launches no kernel from now on
  std::vector<unsigned> streams;      // flags of those that were created
  int device = 0;                     // that the thread uses
};
[[nodiscard]] GpuState& gpu();
/// As it is at the beginning.
void clear_gpu();

/// Launches something on a stream; false where it cannot be, which only CUDA's last error tells.
bool launch(cudaStream_t stream);
/// All is over that was launched on a stream.
void finish_stream(cudaStream_t stream);

}  // namespace carousel::test
