// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What Kokkos leaves to CUDA itself: streams of one's own, and errors of its calls. In builds for
// hosts nothing but what costs nothing.

#include "core/base/check.hpp"
#include "core/base/view.hpp"

namespace carousel {

/// An execution space whose work goes on beside that of all others, in order by itself.
[[nodiscard]] inline ExecutionSpace own_stream(const ExecutionSpace& exec) {
  if constexpr (runs_on_host)
    return exec;
  else
    return Kokkos::Experimental::partition_space(exec, 1).front();
}

/// What CUDA and libraries that ask it take for the GPU of the thread that calls is that of `exec`.
inline void use_gpu_of(const ExecutionSpace& exec);

#ifdef KOKKOS_ENABLE_CUDA
inline void cuda_must(cudaError_t code, const char* call) {
  if (code != cudaSuccess) fail(ExitCode::internal, "{}: {}", call, cudaGetErrorString(code));
}
#define CAROUSEL_CUDA(call) ::carousel::cuda_must(call, #call)

inline void use_gpu_of(const ExecutionSpace& exec) {
  CAROUSEL_CUDA(cudaSetDevice(exec.cuda_device()));
}
#else
inline void use_gpu_of(const ExecutionSpace& /*exec*/) {}
#endif

}  // namespace carousel
