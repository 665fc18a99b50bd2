// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi_check.hpp"

#include <string_view>

#include "core/base/check.hpp"

namespace carousel {

void mpi_failed(const char* call, int code, const char* file, int line) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  const std::string_view path(file);
  fail(ExitCode::peer_lost, "{}:{}: {} failed: {}; see whether another rank ended first",
       path.substr(path.find_last_of('/') + 1), line, call, std::string_view(text, length));
}

}  // namespace carousel
