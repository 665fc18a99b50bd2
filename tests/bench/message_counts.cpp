// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What any program hands to MPI, counted below it, for paper_table.py: a library for LD_PRELOAD
// that takes the place of MPI's functions as tests/comm/message_counter.cpp does in tests, and
// writes CAROUSEL_MESSAGE_COUNTS.RANK when MPI ends.

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/comm/message_counter.hpp"

namespace {

using carousel::test::Counted;

void write(std::FILE* file, const char* name, const Counted& sum, const char* behind) {
  std::fprintf(file, "\"%s\": [%lld, %lld]%s", name, static_cast<long long>(sum.messages),
               static_cast<long long>(sum.bytes), behind);
}

}  // namespace

extern "C" int MPI_Finalize() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* const path = std::getenv("CAROUSEL_MESSAGE_COUNTS");
  std::FILE* file = nullptr;
  if (path != nullptr) {
    const std::string name = std::string(path).append(".").append(std::to_string(rank));
    file = std::fopen(name.c_str(), "w");
  }
  if (file != nullptr) {
    const carousel::test::MessageCounts& counts = carousel::test::counted();
    std::fputs("{", file);
    write(file, "sends", sum(counts.sent), ", ");
    write(file, "all_reduces", counts.all_reduces, ", ");
    write(file, "reduces", counts.reduces, ", ");
    write(file, "broadcasts", counts.broadcasts, "}\n");
    std::fclose(file);
  }
  return PMPI_Finalize();
}
