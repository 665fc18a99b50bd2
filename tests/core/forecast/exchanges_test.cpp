// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Which actions belong to one message or collective, in lists made by hand and in those of
// schedules.

#include "core/forecast/exchanges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/plan/hand_made.hpp"
#include "tests/core/plan/schedules.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using testing::all_reduce;
using testing::all_variants;
using testing::compute;
using testing::describe;
using ::testing::ElementsAre;
using testing::failure;
using ::testing::HasSubstr;
using testing::Lists;
using testing::lists_of;
using testing::post;
using testing::schedule_of;
using testing::send;
using testing::wait;

TEST(Exchanges, JoinsBothEndsAndTheirWaits) {
  const Lists lists = {
      {compute(ActionKind::forward), send(1, 8, 3), send(1, 8, 4), wait(send(1, 8, 4)),
       wait(send(1, 8, 3))},
      {post(0, 8, 4), post(0, 8, 3), wait(post(0, 8, 3)), wait(post(0, 8, 4))},
  };
  const Exchanges exchanges = match_exchanges(lists, {});
  EXPECT_THAT(exchanges.of[0], ElementsAre(-1, 0, 1, 1, 0));
  EXPECT_THAT(exchanges.of[1], ElementsAre(1, 0, 0, 1));
  ASSERT_EQ(exchanges.all.size(), 2U);
  EXPECT_EQ(exchanges.all[1].from, 0);
  EXPECT_EQ(exchanges.all[1].to, 1);
  EXPECT_EQ(exchanges.all[1].bytes, 8);
  EXPECT_EQ(exchanges.all[1].started, 2);
  EXPECT_EQ(exchanges.all[1].index, 2U);
}

TEST(Exchanges, KeepsTheOrderOfEqualMessages) {
  const Lists lists = {
      {send(1, 8), send(1, 8), wait(send(1, 8)), send(1, 8), wait(send(1, 8))},
      {post(0, 8), wait(post(0, 8)), post(0, 8), wait(post(0, 8))},
  };
  const Exchanges exchanges = match_exchanges(lists, {});
  EXPECT_THAT(exchanges.of[0], ElementsAre(0, 1, 0, 2, 1));
  EXPECT_THAT(exchanges.of[1], ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(exchanges.all[2].started, 1);
}

TEST(Exchanges, JoinsCollectivesInOrder) {
  const Lists lists = {
      {all_reduce(8, 1), all_reduce(8, 0), wait(all_reduce(8, 0)), wait(all_reduce(8, 1))},
      {all_reduce(8, 1), wait(all_reduce(8, 1)), all_reduce(8, 0), wait(all_reduce(8, 0))},
      {},
  };
  const Exchanges exchanges = match_exchanges(lists, {{1, 0}});
  EXPECT_THAT(exchanges.groups[0], ElementsAre(0, 1));
  EXPECT_THAT(exchanges.of[0], ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(exchanges.of[1], ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(exchanges.all[0].started, 2);
}

TEST(Exchanges, LeavesNothingOverInSchedules) {
  for (int n = 1; n <= 5; ++n) {
    for (int stages = 1; stages <= 5; ++stages) {
      for (const ParallelConfig& config : all_variants(n, stages)) {
        const Schedule schedule = schedule_of(config, false, (n + stages) % 2 == 0);
        const Lists lists = lists_of(schedule, {3, 7});
        for (const Exchange& exchange : match_exchanges(lists, schedule.groups()).all)
          EXPECT_EQ(exchange.started,
                    exchange.group < 0 ? 2 : std::ssize(schedule.groups()[exchange.group]))
              << describe(config);
      }
    }
  }
}

std::string refusal(const Lists& lists, const std::vector<std::vector<int>>& groups = {}) {
  return failure(ExitCode::internal, [&] { static_cast<void>(match_exchanges(lists, groups)); });
}

TEST(Exchanges, RefusesImpossibleEnds) {
  EXPECT_THAT(refusal({{wait(send(1, 8))}, {}}),
              HasSubstr("device 0, action 0: t=0    step 0   wait       gradient stage 0 to device "
                        "1 8 bytes: waits for what was never started"));
  EXPECT_THAT(refusal({{send(1, 8), wait(send(1, 8)), wait(send(1, 8))}, {}}),
              HasSubstr("device 0, action 2"));
  EXPECT_THAT(refusal({{wait(all_reduce(8))}}), HasSubstr("never started"));
  EXPECT_THAT(refusal({{send(1, 8)}, {post(0, 16)}}), HasSubstr("device 1, action 0"));
  EXPECT_THAT(refusal({{all_reduce(8)}, {all_reduce(9)}}), HasSubstr("another collective"));
  EXPECT_THAT(refusal({{}, {all_reduce(8)}}, {{0}}), HasSubstr("does not belong to"));
  for (int peer : {-1, 0, 1})
    EXPECT_THAT(refusal({{send(peer, 8)}}), HasSubstr("has no other end"));
}

}  // namespace
}  // namespace carousel
