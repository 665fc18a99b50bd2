// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/core/engine/cuda_double.hpp"

#include <cuda_runtime_api.h>

#include <map>

namespace {

/// How much was launched on a stream, and how much of that is over.
struct Stream {
  std::int64_t launched = 0;
  std::int64_t over = 0;
};
struct Mark {
  cudaStream_t stream = nullptr;
  std::int64_t launched = 0;
};

carousel::test::GpuState state;          // NOLINT: one GPU per process
std::map<cudaStream_t, Stream> streams;  // NOLINT
cudaError_t last = cudaSuccess;          // NOLINT
std::uintptr_t handles = 0;              // NOLINT

/// What CUDA keeps as its last error.
cudaError_t told(cudaError_t error) {
  if (error != cudaSuccess) last = error;
  return error;
}

Mark& mark_of(cudaEvent_t event) {
  return *reinterpret_cast<Mark*>(event);
}

}  // namespace

namespace carousel::test {

GpuState& gpu() {
  return state;
}
void clear_gpu() {
  state = {};
  streams.clear();
  last = cudaSuccess;
}
bool launch(cudaStream_t stream) {
  if (told(state.refuses) != cudaSuccess) return false;
  ++streams[stream].launched;
  return true;
}
void finish_stream(cudaStream_t stream) {
  streams[stream].over = streams[stream].launched;
}

}  // namespace carousel::test

// ---- What stands in cuda_runtime_api.h ----------------------------------------------------------

cudaError_t cudaSetDevice(int device) {
  state.device = device;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  state.streams.push_back(flags);
  *stream = reinterpret_cast<cudaStream_t>(++handles);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t /*event*/, unsigned /*flags*/) {
  ++streams[stream].launched;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  *event = reinterpret_cast<cudaEvent_t>(new Mark());
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &mark_of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  mark_of(event) = {stream, streams[stream].launched};
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Mark& mark = mark_of(event);
  return told(streams[mark.stream].over < mark.launched ? cudaErrorNotReady : cudaSuccess);
}

cudaError_t cudaPeekAtLastError() {
  return last;
}
cudaError_t cudaGetLastError() {
  const cudaError_t error = last;
  last = cudaSuccess;
  return error;
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorInvalidConfiguration ? "invalid configuration argument" : "an error";
}
