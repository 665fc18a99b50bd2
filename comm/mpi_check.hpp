// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns a failed MPI call into an Error that names the call and what MPI says about it.

#include <mpi.h>

namespace carousel {

/// Throws Error(peer_lost): a failed call is nearly always a lost peer or network.
[[noreturn]] void mpi_failed(const char* call, int code, const char* file, int line);

}  // namespace carousel

#define CAROUSEL_MPI(call)                                                      \
  do {                                                                          \
    if (const int carousel_mpi_code = (call); carousel_mpi_code != MPI_SUCCESS) \
      ::carousel::mpi_failed(#call, carousel_mpi_code, __FILE__, __LINE__);     \
  } while (false)
