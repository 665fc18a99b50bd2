// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The transport inside one process.

#include "comm/local_transport.hpp"

#include "tests/comm/transport_behaviour.hpp"

namespace carousel::test {
namespace {

constexpr int room = 256;

class LocalTransport : public ::testing::TestWithParam<int> {
 protected:
  LocalTransport()
      : hub_(ExecutionSpace(), groups_of(GetParam()), room,
             [this]() -> double { return ends_.now; }) {
    ends_.devices = GetParam();
    for (int d = 0; d < ends_.devices; ++d) ends_.here[d] = hub_.transport(d);
  }

  LocalHub hub_;
  Ends ends_;
};

TEST_P(LocalTransport, KeepsOrderPerTag) {
  expect_order_per_tag(ends_);
}
TEST_P(LocalTransport, CarriesLargeMessagesBothWays) {
  expect_large_messages_both_ways(ends_);
}
TEST_P(LocalTransport, CarriesTokens) {
  expect_tokens_wait(ends_);
}
TEST_P(LocalTransport, TellsWhenItWasComplete) {
  expect_times_of_completion(ends_);
}
TEST_P(LocalTransport, Sums) {
  expect_sums(ends_);
}
TEST_P(LocalTransport, HasCollectivesOfGroups) {
  expect_collectives_of_groups(ends_);
}
TEST_P(LocalTransport, SumsAndGathersParts) {
  for (const bool equal : {false, true}) expect_parts_of_groups(ends_, equal);
}
TEST_P(LocalTransport, RefusesWrongSizes) {
  expect_wrong_sizes_refused(ends_);
}
TEST_P(LocalTransport, RefusesMisuse) {
  expect_misuse_refused(ends_, room);
}

INSTANTIATE_TEST_SUITE_P(Devices, LocalTransport, ::testing::Values(2, 3, 8));

}  // namespace
}  // namespace carousel::test
