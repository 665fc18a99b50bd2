// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lets Kokkos before 4.7 compile with CUDA 13, which changed the signatures of three runtime calls
// that Kokkos makes. Force-included into Kokkos and its users by jobscripts/kokkos.sh; knows
// nothing of Carousel.

#if defined(__CUDACC__)
#include <cuda_runtime_api.h>

#if CUDART_VERSION >= 13000

/// A device number was enough until CUDA 12; now a location has a kind as well.
inline cudaMemLocation carousel_memory_location(int device) {
  cudaMemLocation location = {};
  location.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  location.id = device == cudaCpuDeviceId ? 0 : device;
  return location;
}

inline cudaError_t cudaMemPrefetchAsync(const void* data, size_t bytes, int device,
                                        cudaStream_t stream) {
  return cudaMemPrefetchAsync(data, bytes, carousel_memory_location(device), 0, stream);
}

inline cudaError_t cudaMemAdvise(const void* data, size_t bytes, cudaMemoryAdvise advice,
                                 int device) {
  return cudaMemAdvise(data, bytes, advice, carousel_memory_location(device));
}

/// Dependencies without edge data are ordinary ones.
inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                            const cudaGraphNode_t* to, size_t count) {
  return cudaGraphAddDependencies(graph, from, to, nullptr, count);
}

#endif
#endif
