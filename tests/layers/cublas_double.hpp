// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Another library in cuBLASLt's place, for tests without GPUs: cublas_double.cpp has its functions,
// which multiply host memory, in double, as descriptors say. What cuBLASLt would take amiss, such
// as memory that is aligned less than was promised, ends in an error.

#include <cublasLt.h>

#include <string>
#include <vector>

namespace carousel::test {

struct CublasCalls {
  int open = 0;                       // handles, descriptors and preferences that are not destroyed
  int heuristics = 0;                 // algorithms asked for
  std::vector<std::string> products;  // "T 64x10 N 64x16 = 10x16 bias", as in columns
};
[[nodiscard]] const CublasCalls& cublas_calls();
void clear_cublas();

/// The heuristic has nothing for this epilogue from now on; 0: something for all.
void refuse_epilogue(int epilogue);
/// It asks for so many bytes of workspace, or has nothing.
void need_workspace(std::size_t bytes);

}  // namespace carousel::test
