// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What Kokkos leaves to CUDA itself: streams of one's own, and errors of its calls and launches. In
// builds for hosts nothing but what costs nothing.

#include "core/base/check.hpp"
#include "core/base/view.hpp"

namespace carousel {

#ifdef KOKKOS_ENABLE_CUDA
inline void cuda_must(cudaError_t code, const char* call) {
  if (code != cudaSuccess) fail(ExitCode::internal, "{}: {}", call, cudaGetErrorString(code));
}
#define CAROUSEL_CUDA(call) ::carousel::cuda_must(call, #call)

/// What CUDA and libraries that ask it take for the GPU of the thread that calls is that of `exec`.
inline void use_gpu_of(const ExecutionSpace& exec) {
  CAROUSEL_CUDA(cudaSetDevice(exec.cuda_device()));
}

/// An execution space whose work goes on beside that of all others, in order by itself. Kokkos' own
/// streams wait for calls of CUDA that name none, and those for all of them: for a receive, too,
/// that waits for another GPU.
[[nodiscard]] inline ExecutionSpace own_stream(const ExecutionSpace& exec) {
  use_gpu_of(exec);
  cudaStream_t stream = nullptr;
  CAROUSEL_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return {stream, Kokkos::Impl::ManageStream::yes};
}

/// Throws Error(internal) where a kernel of this thread failed or was not even launched: Kokkos
/// looks at that only where it checks bounds. Whoever goes on from what kernels have done looks
/// first.
inline void check_launches() {
  const cudaError_t code = cudaPeekAtLastError();
  if (code == cudaSuccess) return;
  // Whether something is over was asked, and the answer was no.
  if (code == cudaErrorNotReady)
    (void)cudaGetLastError();
  else
    cuda_must(code, "a kernel failed, or was not launched");
}
#else
inline void use_gpu_of(const ExecutionSpace& /*exec*/) {}
[[nodiscard]] inline ExecutionSpace own_stream(const ExecutionSpace& exec) {
  return exec;
}
inline void check_launches() {}
#endif

}  // namespace carousel
