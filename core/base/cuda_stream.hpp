// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The stream that calls of NVIDIA's libraries take. Only where these are: tests on hosts put others
// in their place, which compute before they return.

#include <cuda_runtime_api.h>

#include "core/base/view.hpp"

namespace carousel {

[[nodiscard]] inline cudaStream_t stream_of([[maybe_unused]] const ExecutionSpace& exec) {
#ifdef KOKKOS_ENABLE_CUDA
  return exec.cuda_stream();
#else
  return nullptr;
#endif
}

}  // namespace carousel
