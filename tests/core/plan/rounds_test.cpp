// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Rounds of every plan: proven by the checker, and run by groups that block as NCCL's do, in
// training and outside of it. How many there are.

#include "core/plan/rounds.hpp"

#include <gtest/gtest.h>

#include "core/plan/evaluation.hpp"
#include "core/proof/checker.hpp"
#include "tests/core/plan/blocking_groups.hpp"
#include "tests/core/plan/schedules.hpp"

namespace carousel {
namespace {

using testing::all_variants;
using testing::BlockingGroups;
using testing::describe;
using testing::schedule_of;

std::string run(const Schedule& schedule, const Segment& segment) {
  const auto lists = schedule.lists(segment);
  return BlockingGroups(lists, schedule.groups()).run();
}

/// Rounds in which the devices of a plan have messages, per device and time step.
struct Density {
  std::string plan;
  double rounds = 0;
};

/// Between two segments that differ by `steps` steps, so that their ends do not count.
double density(const Schedule& schedule) {
  constexpr std::int64_t steps = 4;
  int groups = 0;
  for (const std::int64_t sign : {-1, 1}) {
    const std::int64_t last = schedule.window().last + (sign > 0 ? steps : 0);
    const auto lists = schedule.lists({0, last});
    BlockingGroups simulation(lists, schedule.groups());
    EXPECT_EQ(simulation.run(), "");
    groups += static_cast<int>(sign) * simulation.groups_run();
  }
  return static_cast<double>(groups) / static_cast<double>(schedule.devices()) /
         static_cast<double>(steps * schedule.period_time());
}

class RoundsOfN : public ::testing::TestWithParam<int> {};  // N

TEST_P(RoundsOfN, AreProvenAndEndForEveryPlan) {
  int plans = 0;
  std::map<std::string, std::pair<Density, std::vector<double>>> found;
  for (int stages = 1; stages <= 8; ++stages) {
    for (ParallelConfig config : all_variants(GetParam(), stages)) {
      // Evaluations then send more.
      if (config.rule != RuleKind::dp && stages % 2 == 0 && has_prediction(config))
        config.predict = 1;
      for (const bool norms : {false, true}) {
        if (norms && config.rule != RuleKind::dp) continue;
        const Schedule schedule = schedule_of(config, norms, true);
        if (schedule.devices() == 1) continue;
        SCOPED_TRACE(describe(config));
        ++plans;
        const auto fault = find_fault(schedule);
        ASSERT_FALSE(fault.has_value()) << fault->text;
        for (const Segment segment : {schedule.window(), Segment{0, 1}, Segment{2, 4}})
          ASSERT_EQ(run(schedule, segment), "");
        for (const std::int64_t batches : {1, 2 * config.micro_batches + 1}) {
          const auto lists = evaluation_actions(schedule, batches, 3, 8);
          ASSERT_EQ(BlockingGroups(lists, schedule.groups()).run(), "");
        }
        const auto closing = closing_actions(schedule, 3);
        ASSERT_EQ(BlockingGroups(closing, schedule.groups()).run(), "");
        if (norms) continue;
        const double rounds = density(schedule);
        auto& [most, all] = found[fmt::format("{:<10} {:<6} {}", to_string(config.placement),
                                              to_string(config.rule), to_string(config.reduction))];
        all.push_back(rounds);
        if (rounds > most.rounds) most = {describe(config), rounds};
      }
    }
  }
  for (const auto& [name, entry] : found) {
    double sum = 0;
    for (const double rounds : entry.second) sum += rounds;
    fmt::print("{:<28} {:4} plans, {:.2f} rounds per device and time step, at most {:.2f}: {}\n",
               name, entry.second.size(), sum / static_cast<double>(entry.second.size()),
               entry.first.rounds, entry.first.plan);
  }
  EXPECT_GT(plans, GetParam() == 1 ? 10 : 100);
}
INSTANTIATE_TEST_SUITE_P(MicroBatches, RoundsOfN, ::testing::Range(1, 9));

/// Without rounds nothing is added.
TEST(Rounds, AreOnlyWhereTheyAreAskedFor) {
  const ParallelConfig config = testing::parallel(RuleKind::cdp_v2, Placement::replicated, 3, 3);
  const Schedule plain = schedule_of(config);
  const Schedule rounded = schedule_of(config, false, true);
  for (int d = 0; d < plain.devices(); ++d) {
    std::vector<Action> list = rounded.actions(d, plain.window());
    std::erase_if(list, [](const Action& a) { return a.kind == ActionKind::exchange; });
    for (Action& action : list) {
      EXPECT_EQ(action.round.exists(), starts_message(action)) << to_string(action);
      action.round = {};
    }
    EXPECT_EQ(list, plain.actions(d, plain.window()));
  }
}

/// A chain of three devices within one time step: each waits before it sends.
TEST(Rounds, FollowEachOtherWhereMessagesDo) {
  const auto message = [](ActionKind kind, Direction direction, int peer) {
    return Action{.kind = kind,
                  .payload = Payload::gradient,
                  .direction = direction,
                  .time = 5,
                  .micro_batch = direction == Direction::send ? peer - 1 : peer,
                  .stage = 0,
                  .peer = peer,
                  .bytes = 8};
  };
  const auto post = [&](int from) { return message(ActionKind::post, Direction::receive, from); };
  const auto arrive = [&](int from) { return message(ActionKind::wait, Direction::receive, from); };
  const auto send = [&](int to) { return message(ActionKind::send, Direction::send, to); };
  const auto sent = [&](int to) { return message(ActionKind::wait, Direction::send, to); };
  std::vector<std::vector<Action>> lists = {
      {send(1), sent(1)}, {post(0), arrive(0), send(2), sent(2)}, {post(1), arrive(1)}};
  add_rounds(lists, {});
  EXPECT_EQ(lists[0][0].round, (Round{5, 0}));
  EXPECT_EQ(lists[1][0].round, (Round{5, 0}));
  EXPECT_EQ(lists[1][3].round, (Round{5, 1}));
  EXPECT_EQ(lists[2][0].round, (Round{5, 1}));
  EXPECT_EQ(lists[1][1].kind, ActionKind::exchange);
  EXPECT_EQ(lists[1][4].kind, ActionKind::exchange);
  EXPECT_EQ(lists[1][4].round, (Round{5, 1}));
  EXPECT_EQ(BlockingGroups(lists, {}).run(), "");
  // One round for both would never end: device 1 waits for the first in order to start the second.
  for (std::vector<Action>& list : lists) {
    for (Action& action : list) {
      if (action.round.exists()) action.round = {5, 0};
    }
  }
  std::erase_if(lists[1], [&](const Action& a) { return a == lists[1][1]; });
  EXPECT_NE(BlockingGroups(lists, {}).run(), "");
}

}  // namespace
}  // namespace carousel
