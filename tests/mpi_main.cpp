// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The main of tests that run on several ranks: a failing rank says its number, and every rank ends
// with a failure when any of them had one.

#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <cstdio>

#include "tests/mpi_session.hpp"

namespace carousel::test {
namespace {

const MpiSession* session_of_main = nullptr;

class RankPrinter final : public testing::EmptyTestEventListener {
 public:
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", session().rank(),
                 result.file_name() == nullptr ? "" : result.file_name(), result.line_number(),
                 result.summary());
  }
};

int run(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  session_of_main = &session;
  testing::InitGoogleTest(&argc, argv);
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (session.rank() != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new RankPrinter);
  const Kokkos::ScopeGuard kokkos(argc, argv);
  try {
    session.together([] {
      if (RUN_ALL_TESTS() != 0) fail(ExitCode::internal, "a test failed");
    });
  } catch (const AgreedError&) {
    return 1;  // and 70 where MPI does not end
  }
  session.will_end(ExitCode::done, 20);
  return 0;
}

}  // namespace

const MpiSession& session() {
  return *session_of_main;
}

}  // namespace carousel::test

int main(int argc, char** argv) {
  return carousel::test::run(argc, argv);
}
