// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The transport between processes; every rank is one device.

#include "comm/mpi_transport.hpp"

#include "tests/comm/transport_behaviour.hpp"
#include "tests/mpi_session.hpp"

namespace carousel::test {
namespace {

constexpr int room = 32;

class MpiTransport : public ::testing::Test {
 protected:
  MpiTransport() {
    ends_.devices = session().size();
    ends_.here[session().rank()] =
        session().transport(session().groups(groups_of(session().size())), room,
                            [this]() -> double { return ends_.now; });
  }

  void SetUp() override {
    if (!runs_on_host && !MpiSession::takes_gpu_memory())
      GTEST_SKIP() << "this MPI library reads no GPU's memory; runs copy messages to the host";
  }

  Ends ends_;
};

TEST_F(MpiTransport, KeepsOrderPerTag) {
  expect_order_per_tag(ends_);
}
TEST_F(MpiTransport, CarriesLargeMessagesBothWays) {
  expect_large_messages_both_ways(ends_);
}
TEST_F(MpiTransport, CarriesTokens) {
  expect_tokens_wait(ends_);
}
TEST_F(MpiTransport, TellsWhenItWasComplete) {
  expect_times_of_completion(ends_);
}
TEST_F(MpiTransport, Sums) {
  expect_sums(ends_);
}
TEST_F(MpiTransport, HasCollectivesOfGroups) {
  expect_collectives_of_groups(ends_);
}
TEST_F(MpiTransport, SumsAndGathersParts) {
  for (const bool equal : {false, true}) expect_parts_of_groups(ends_, equal);
}
TEST_F(MpiTransport, RefusesWrongSizes) {
  expect_wrong_sizes_refused(ends_);
}
TEST_F(MpiTransport, RefusesMisuse) {
  expect_misuse_refused(ends_, room);
}

}  // namespace
}  // namespace carousel::test
