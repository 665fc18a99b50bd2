// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What this build of Carousel is made of, for --version and for the provenance in every file. The
// values come from CMake, so that the thinking half can tell them without loading a library.

#include <string>

namespace carousel {

struct BuildInfo {
  std::string version;     // "0.1.0"
  std::string git_hash;    // "0123abc", with "-dirty" for changed files; "unknown" without git
  std::string compiler;    // "GNU 12.2.0"
  std::string build_type;  // "Release"
  std::string precision;   // "float" or "double"
  std::string kokkos;      // "4.5.1 (OPENMP, SERIAL)"
  std::string mpi;
  std::string hdf5;
  std::string cuda;     // empty without
  std::string nccl;     // likewise
  std::string kernels;  // of vendors: "cuBLAS 13.0.2"; likewise
  std::string graphs;   // of vendors, too: "cuDNN 9.19.0"; likewise

  /// One line: "Kokkos 4.5.1 (...), MPI ..., HDF5 ...".
  [[nodiscard]] std::string libraries() const;
};

[[nodiscard]] const BuildInfo& build_info();

}  // namespace carousel
