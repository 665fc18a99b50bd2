// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Messages of replicated schedules: how many, how large, between whom, and how many time steps each
// has from its send to the wait that needs it.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/plan/schedule.hpp"
#include "tests/core/plan/schedules.hpp"

namespace carousel {
namespace {

using testing::all_variants;
using testing::describe;
using testing::lists_of;
using testing::parallel;
using testing::schedule_of;
using testing::variants;

/// One message of a schedule, its two ends put together.
struct Travel {
  Action send;
  int from = 0;
  std::int64_t wait_time = 0;  // of the receiver

  [[nodiscard]] std::int64_t time_steps() const { return wait_time - send.time; }
};

/// Messages of training step `step`, whose neighbours on both sides are part of the segment.
std::vector<Travel> messages_of(const Schedule& schedule, std::int64_t step) {
  const auto lists = lists_of(schedule, {0, step + schedule.reach() + 2});
  std::vector<Travel> messages;
  for (int from = 0; from < schedule.devices(); ++from) {
    for (const Action& send : lists[from]) {
      if (send.kind != ActionKind::send || send.step != step) continue;
      const auto wait = std::ranges::find_if(lists[send.peer], [&](const Action& a) {
        return a.kind == ActionKind::wait && a.direction == Direction::receive && a.peer == from &&
               a.payload == send.payload && a.step == send.step && a.stage == send.stage;
      });
      if (wait == lists[send.peer].end()) {
        ADD_FAILURE() << "nobody waits for " << to_string(send);
        continue;
      }
      messages.push_back({send, from, wait->time});
    }
  }
  return messages;
}

/// Messages per step of one kind about one stage; tokens are about stage -1.
using Counts = std::map<std::pair<Payload, int>, int>;

Counts counts_of(const std::vector<Travel>& messages) {
  Counts counts;
  for (const Travel& message : messages) ++counts[{message.send.payload, message.send.stage}];
  return counts;
}

/// Of one placement, with 1, 2 and 4 passes of `workers` each.
std::vector<ParallelConfig> variants_in_passes(Placement placement, int workers, int stages) {
  std::vector<ParallelConfig> all;
  for (const int passes : {1, 2, 4}) {
    if (passes > 1 && workers * stages > 16) continue;
    for (const ParallelConfig& config : all_variants(workers * passes, stages, passes))
      if (config.placement == placement) all.push_back(config);
  }
  return all;
}

// Whatever a worker adds up by itself.
TEST(Messages, OfARingAreAsManyAsOfARingAllReduce) {
  for (int n = 1; n <= 9; ++n) {
    for (int stages = 1; stages <= 9; ++stages) {
      for (const ParallelConfig& config : variants_in_passes(Placement::replicated, n, stages)) {
        if (config.shards) continue;
        const Schedule schedule = schedule_of(config);
        Counts expected;
        const bool cyclic = config.rule != RuleKind::dp;
        const bool fast = by_collectives(config.reduction);
        const bool ring = n > 1 && (cyclic || !fast);
        // Where slots sum by collectives, a partial sum goes from slot to slot.
        const int sums = fast ? stages - 1 : n - 1;
        for (int j = 0; ring && j < stages; ++j) {
          if (sums > 0) expected[{Payload::gradient, j}] = sums;
          if (!cyclic) expected[{Payload::total, j}] = n - 1;
          if (cyclic) expected[{Payload::parameters, j}] = n - 1;
          if (cyclic && schedule.owner(j) != n - 1) expected[{Payload::total, j}] = 1;
        }
        if (ring && cyclic) expected[{Payload::token, -1}] = n - 1;

        const std::vector<Travel> messages = messages_of(schedule, 3);
        EXPECT_EQ(counts_of(messages), expected) << describe(config);
        std::int64_t bytes = 0;
        for (const auto& [kind, count] : expected) {
          const auto& [payload, stage] = kind;
          if (stage < 0) continue;
          bytes += count * (payload == Payload::parameters ? schedule.parameter_bytes(stage)
                                                           : schedule.message_bytes(stage));
        }
        Traffic sent;
        for (int d = 0; d < schedule.devices(); ++d) {
          sent.messages += traffic(schedule, d).messages;
          sent.bytes += traffic(schedule, d).bytes;
        }
        EXPECT_EQ(sent.messages, static_cast<std::int64_t>(messages.size())) << describe(config);
        EXPECT_EQ(sent.bytes, bytes) << describe(config);
      }
    }
  }
}

/// Bytes that all devices send in a step, of equal stages.
double volume(RuleKind rule, Placement placement, int n, std::int64_t parameter_bytes) {
  const auto stages = static_cast<std::size_t>(n);
  ScheduleSpec spec{.parallel = parallel(rule, placement, n, n),
                    .message_bytes = std::vector<std::int64_t>(stages, 4096),
                    .parameter_bytes = std::vector<std::int64_t>(stages, parameter_bytes)};
  const Schedule schedule(spec);
  std::int64_t bytes = 0;
  for (int d = 0; d < n; ++d) bytes += traffic(schedule, d).bytes;
  return static_cast<double>(bytes);
}

/// With parameters of half the size: of a gradient, or total, and parameters per hop three quarters
/// are left; of a gradient and two copies two thirds.
TEST(Messages, AreFewerBytesWhereParametersAreSmaller) {
  constexpr int n = 16;
  const auto ratio = [](RuleKind rule, Placement placement) {
    return volume(rule, placement, n, 2048) / volume(rule, placement, n, 4096);
  };
  // N - 1 hops of gradients, at most one of a total, and N - 1 of parameters.
  EXPECT_NEAR(ratio(RuleKind::cdp_v1, Placement::replicated), 0.75, 0.25 / n);
  EXPECT_NEAR(ratio(RuleKind::cdp_v2, Placement::replicated), 0.75, 0.25 / n);
  EXPECT_EQ(ratio(RuleKind::dp, Placement::replicated), 1) << "every device updates";
  EXPECT_NEAR(ratio(RuleKind::cdp_v2, Placement::sharded), 2.0 / 3, 1.0 / n);
}

/// What all devices send of a kind in a step: messages, and bytes.
using Sent = std::map<Payload, std::pair<std::int64_t, std::int64_t>>;

// Inside a slot of R devices (of micro-batches that run together, all N) a reduce-scatter and an
// all-gather, R - 1 times the stage each; between S slots a partial sum, perhaps a total, and the
// parameters, each once round, whatever R. Where parameters pass by, these come twice.
TEST(Messages, OfShardsAreAReduceScatterARingAndAnAllGather) {
  int compared = 0;
  for (int n = 1; n <= 8; ++n) {
    for (int stages = 1; stages <= 4; ++stages) {
      std::vector<ParallelConfig> configs = variants_in_passes(Placement::replicated, n, stages);
      std::ranges::copy(variants_in_passes(Placement::sharded, n, stages),
                        std::back_inserter(configs));
      for (const ParallelConfig& config : configs) {
        if (!config.shards || config.reduction != Reduction::ordered) continue;
        SCOPED_TRACE(describe(config));
        const Schedule schedule = schedule_of(config);
        const bool joint = config.rule == RuleKind::dp || config.sums == Sums::late;
        const int slots = joint ? 1 : stages;
        const int replicas = n / slots;
        Sent expected;
        const auto add = [&](Payload payload, std::int64_t times, std::int64_t bytes) {
          if (times == 0) return;
          expected[payload].first += times;
          expected[payload].second += times * bytes;
        };
        add(Payload::token, (slots - 1) * replicas, 0);
        for (int j = 0; j < stages; ++j) {
          // Those who update a stage tell each other the norms of their pieces.
          std::set<int> updating;
          for (std::size_t p = 0; p < schedule.spec().pieces[j].size(); ++p) {
            if (schedule.spec().pieces[j][p].gradients > 0)
              updating.insert(static_cast<int>(p) % replicas);
          }
          const auto others = std::ssize(updating) - 1;
          for (const PieceBytes& piece : schedule.spec().pieces[j]) {
            if (piece.gradients == 0) continue;
            add(Payload::part, slots * (replicas - 1), piece.gradients);
            add(Payload::gradient, slots - 1, piece.gradients);
            const bool diagonal = schedule.owner(j) / replicas != slots - 1;
            add(Payload::total, diagonal ? 1 : 0, piece.gradients);
            const std::int64_t all = slots - 1 + slots * (replicas - 1);
            if (schedule.traits().passes_parameters) {
              add(Payload::forward_copy, all, piece.parameters);
              add(Payload::backward_copy, all, piece.parameters);
            } else {
              add(Payload::parameters, all, piece.parameters);
            }
            if (piece.norms > 0) add(Payload::norms, others, piece.norms);
          }
        }
        Sent sent;
        for (int d = 0; d < schedule.devices(); ++d) {
          for (const Action& a : schedule.actions(d, {3, 4})) {
            if (a.kind != ActionKind::send) continue;
            ++sent[a.payload].first;
            sent[a.payload].second += a.bytes;
          }
        }
        EXPECT_EQ(sent, expected);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 100);
}

TEST(Messages, GoToTheNextDeviceExceptTheDiagonalAndParameters) {
  for (int n = 2; n <= 9; ++n) {
    for (int stages = 1; stages <= 9; ++stages) {
      for (const ParallelConfig& config : variants_in_passes(Placement::replicated, n, stages)) {
        if (config.shards) continue;
        const Schedule schedule = schedule_of(config);
        for (const Travel& message : messages_of(schedule, 3)) {
          const Action& send = message.send;
          const bool diagonal = send.payload == Payload::total && config.rule != RuleKind::dp;
          if (diagonal) {
            EXPECT_EQ(message.from, n - 1);
            EXPECT_EQ(send.peer, schedule.owner(send.stage));
          } else if (send.payload == Payload::gradient && config.reduction == Reduction::fast) {
            const Rule& rule = schedule.rule();
            EXPECT_EQ(rule.last_in_slot(message.from), message.from) << describe(config);
            EXPECT_EQ(send.peer, rule.last_in_slot(message.from + 1)) << describe(config);
          } else if (send.payload != Payload::parameters) {
            EXPECT_EQ(send.peer, (message.from + 1) % n) << describe(config);
          }
          if (send.payload == Payload::gradient) {
            EXPECT_EQ(send.micro_batch, schedule.rule().last_of(message.from));
          }
        }
      }
    }
  }
}

TEST(Messages, OfParametersGoFromTheOwnerToAllInTheOrderOfNeed) {
  for (int n = 2; n <= 9; ++n) {
    for (int stages = 1; stages <= 9; ++stages) {
      for (const ParallelConfig& config : variants_in_passes(Placement::replicated, n, stages)) {
        if (config.rule == RuleKind::dp || config.shards) continue;
        SCOPED_TRACE(describe(config));
        const Schedule schedule = schedule_of(config);
        std::map<std::pair<int, int>, int> next;  // [stage, device]
        for (const Travel& message : messages_of(schedule, 3)) {
          if (message.send.payload != Payload::parameters) continue;
          const auto link = std::pair(message.send.stage, message.from);
          EXPECT_TRUE(next.emplace(link, message.send.peer).second);
          EXPECT_GE(message.time_steps(), 0);
        }
        for (int j = 0; j < stages; ++j) {
          std::set<int> reached = {schedule.owner(j)};
          std::int64_t before = 0;
          for (int d = schedule.owner(j); next.contains({j, d});) {
            d = next.at({j, d});
            EXPECT_TRUE(reached.insert(d).second);
            EXPECT_LE(before, schedule.rule().first_use(d, j, 0));
            before = schedule.rule().first_use(d, j, 0);
          }
          EXPECT_EQ(std::ssize(reached), n);
        }
      }
    }
  }
}

TEST(Messages, OfTheFastReductionAreOneAllReduce) {
  ParallelConfig config = parallel(RuleKind::dp, Placement::replicated, 4, 3);
  config.reduction = Reduction::fast;
  const Schedule schedule = schedule_of(config);
  for (int d = 0; d < 4; ++d) {
    std::vector<Action> collectives;
    for (const Action& a : schedule.actions(d, {3, 4}))
      if (a.kind == ActionKind::all_reduce) collectives.push_back(a);
    ASSERT_EQ(collectives.size(), 1U);
    EXPECT_EQ(collectives[0].bytes, 64 + 128 + 192);
  }
}

// Whoever updates a stage has measured it; devices that have not all stages tell each other once,
// and no update begins before that.
TEST(Messages, OfNormsAreOneAllReduce) {
  for (int n = 1; n <= 6; ++n) {
    for (int stages = 1; stages <= 6; ++stages) {
      for (const ParallelConfig& config : variants(n, stages)) {
        if (config.rule != RuleKind::dp) continue;
        SCOPED_TRACE(describe(config));
        const Schedule schedule = schedule_of(config, true);
        const bool split = schedule.traits().splits_stages && stages > 1;
        const bool shares =
            config.placement == Placement::sharded || config.reduction == Reduction::owner;
        const bool sharded = shares && n > 1;
        for (int d = 0; d < schedule.devices(); ++d) {
          std::vector<int> measured;
          std::vector<int> updated;
          int told = 0;
          for (const Action& a : schedule.actions(d, {3, 4})) {
            if (a.kind == ActionKind::measure) measured.push_back(a.stage);
            if (a.kind == ActionKind::update) updated.push_back(a.stage);
            if (a.payload != Payload::norms) continue;
            EXPECT_TRUE(updated.empty());
            EXPECT_EQ(a.bytes, schedule.spec().norm_bytes);
            const std::vector<int>& group = schedule.groups()[a.group];
            EXPECT_EQ(std::ssize(group), sharded ? n : stages);
            if (a.kind == ActionKind::all_reduce) ++told;
          }
          EXPECT_EQ(measured, updated);
          EXPECT_EQ(told, split || sharded ? 1 : 0);
        }
      }
    }
  }
}

// One collective per stage and slot of several micro-batches, which has a time step of its own
// while the next stage computes; only the last slot of rules without slack waits for it at once.
TEST(Messages, OfTheFastReductionSumSlotsBesideTheNextBackward) {
  for (const int slack : {0, 1}) {
    ParallelConfig config = parallel(RuleKind::cdp_v2, Placement::replicated, 7, 3, slack);
    config.reduction = Reduction::fast;
    const Schedule schedule = schedule_of(config);
    EXPECT_EQ(schedule.groups(), (std::vector<std::vector<int>>{{0, 1, 2}, {3, 4}, {5, 6}}));
    for (int d = 0; d < 7; ++d) {
      std::map<int, std::int64_t> started;  // [stage] time
      int finished = 0;
      for (const Action& a : schedule.actions(d, {3, 4})) {
        if (!is_collective(a)) continue;
        EXPECT_EQ(a.group, schedule.rule().slot_of(d));
        EXPECT_EQ(a.peer, schedule.rule().last_in_slot(d));
        if (a.kind != ActionKind::wait) {
          EXPECT_EQ(a.kind, ActionKind::reduce);
          EXPECT_TRUE(started.emplace(a.stage, a.time).second);
          continue;
        }
        ++finished;
        EXPECT_EQ(a.time - started.at(a.stage), d == 6 && slack == 0 ? 0 : 1);
      }
      EXPECT_EQ(started.size(), 3U);
      EXPECT_EQ(finished, 3);
    }
  }
}

// Where N <= S, only the diagonal is exposed; N = S is the case of the paper.
TEST(Messages, OfV2HaveTwoTimeStepsExceptTheDiagonal) {
  for (int stages = 2; stages <= 12; ++stages) {
    for (int n = 2; n <= stages; ++n) {
      const Schedule schedule =
          schedule_of(parallel(RuleKind::cdp_v2, Placement::replicated, n, stages));
      for (const Travel& message : messages_of(schedule, 3)) {
        const Payload payload = message.send.payload;
        if (payload == Payload::gradient || payload == Payload::parameters) {
          EXPECT_GE(message.time_steps(), 2) << describe(schedule.parallel());
        } else if (n == stages || payload == Payload::token) {
          EXPECT_EQ(message.time_steps(), 1) << to_string(payload);
        } else {
          EXPECT_GE(message.time_steps(), 1) << to_string(payload);
        }
        if (payload == Payload::gradient && n == stages) {
          EXPECT_EQ(message.time_steps(), 2);
        }
      }
    }
  }
}

// Where N > S, micro-batches of one slot run at the same time: a chain of messages inside the slot
// has no time to hide, from one slot to the next there are two time steps.
TEST(Messages, InsideASlotHaveNoTimeToHide) {
  for (int stages = 1; stages <= 8; ++stages) {
    for (int n = stages + 1; n <= 3 * stages; ++n) {
      const Schedule schedule =
          schedule_of(parallel(RuleKind::cdp_v2, Placement::replicated, n, stages));
      const Rule& rule = schedule.rule();
      for (const Travel& message : messages_of(schedule, 3)) {
        const Action& send = message.send;
        const bool same_slot = rule.slot_of(message.from) == rule.slot_of(send.peer);
        if (send.payload == Payload::gradient) {
          EXPECT_EQ(message.time_steps(), same_slot ? 0 : 2) << describe(schedule.parallel());
        } else if (send.payload == Payload::parameters && stages > 1) {
          EXPECT_TRUE(same_slot ? message.time_steps() == 0 : message.time_steps() >= 2)
              << describe(schedule.parallel()) << ": " << to_string(send);
        }
      }
    }
  }
}

// Slack and v1 take the load off the diagonal, but hand part of it to the parameters: device 0
// needs stage j within 2j + 2 time steps, which the total and the way from the owner share.
TEST(Messages, OfDelayedRulesShareTheTimeToTheFirstReader) {
  for (int n = 2; n <= 9; ++n) {
    for (const ParallelConfig& config : variants(Placement::replicated, n, n)) {
      if (config.rule == RuleKind::dp) continue;
      if (config.rule == RuleKind::cdp_v2 && config.slack == 0) continue;
      for (const Travel& message : messages_of(schedule_of(config), 3)) {
        if (message.send.payload == Payload::total) {
          EXPECT_GE(message.time_steps(), 2) << describe(config);
        } else if (message.send.payload == Payload::parameters) {
          EXPECT_GE(message.time_steps(), 1) << describe(config);
        }
      }
    }
  }
}

// Half of the time is for each of the two. Stage 0 has no total on the way, and stage N-1 is device
// 0's own.
TEST(Messages, OfV1HaveHalfOfTheTimeToTheFirstReader) {
  for (int n = 3; n <= 9; ++n) {
    int ways = 0;
    for (const Travel& message :
         messages_of(schedule_of(parallel(RuleKind::cdp_v1, Placement::replicated, n, n)), 3)) {
      const int j = message.send.stage;
      const int owner = n - 1 - j;
      if (j == 0 || owner <= 0) continue;
      if (message.send.payload == Payload::total) {
        EXPECT_EQ(message.time_steps(), j + 2) << to_string(message.send);
      } else if (message.send.payload == Payload::parameters && message.from == owner) {
        EXPECT_EQ(message.send.peer, 0);
        EXPECT_EQ(message.time_steps(), j + 1) << to_string(message.send);
        ++ways;
      }
    }
    EXPECT_EQ(ways, n - 2);
  }
}

// With k passes each message has k times the time, but for a few stages where slots give way.
TEST(Messages, OfSeveralPassesHaveTheTimeOfAll) {
  for (const int n : {3, 4, 6}) {
    for (const int passes : {2, 4, 5}) {
      ParallelConfig config = parallel(RuleKind::cdp_v1, Placement::replicated, n * passes, n);
      config.passes = passes;
      const Schedule schedule = schedule_of(config);
      for (const Travel& message : messages_of(schedule, 3)) {
        const Action& send = message.send;
        if (send.payload == Payload::token) continue;
        const std::int64_t least = send.payload == Payload::total ? passes - 1 : 2 * passes - 4;
        EXPECT_GE(message.time_steps(), least) << to_string(send);
      }
    }
  }
}

/// Time steps from the last backward of a step to the first forward that reads what it makes, of
/// the stage that has least.
std::int64_t least_time(const Rule& rule) {
  std::int64_t least = rule.period();
  for (int j = 0; j < rule.stages(); ++j) {
    for (int w = 0; w < rule.workers(); ++w)
      least =
          std::min(least, rule.first_use(w, j, 0) - rule.gradient_time(rule.workers() - 1, j, 0));
  }
  return least;
}

// Of v1 with shards: a third for sums inside a slot, a third for the total on its way, a third for
// the gathering of new parameters; as far as gradients stay, which are those of a stage for each
// pass. With a single pass all of it is one time step.
TEST(Messages, OfShardsInSeveralPassesShareTheTimeOfAll) {
  for (const int stages : {2, 3, 4, 6}) {
    for (const int replicas : {2, 3}) {
      for (const int passes : {1, 2, 4, 8}) {
        ParallelConfig config =
            parallel(RuleKind::cdp_v1, Placement::replicated, stages * replicas * passes, stages);
        config.passes = passes;
        config.shards = true;
        const Schedule schedule = schedule_of(config);
        const Rule& rule = schedule.rule();
        const std::int64_t least = least_time(rule);
        const std::int64_t inside =
            passes == 1 ? 1 : std::clamp<std::int64_t>(least / 3, 1, stages);
        for (const Travel& message : messages_of(schedule, 3)) {
          const Action& send = message.send;
          const bool same_slot = rule.slot_of(message.from) == rule.slot_of(send.peer);
          std::int64_t wanted = 0;
          if (send.payload == Payload::part || (send.payload == Payload::parameters && same_slot))
            wanted = inside;
          else if (send.payload == Payload::total)
            wanted = (least - 2 * inside - 1) / 2;  // where others need what is made of it first
          else if (send.payload == Payload::gradient)
            wanted = passes - 2;  // less where slots give way
          EXPECT_GE(message.time_steps(), wanted) << describe(config) << ": " << to_string(send);
        }
        config.reduction = Reduction::fast;
        const Schedule fast = schedule_of(config);
        for (const std::vector<Action>& list : lists_of(fast, {0, fast.reach() + 5})) {
          for (const Action& start : list) {
            if (start.step != 3 || !starts_message(start) || !is_collective(start)) continue;
            const auto wait = std::ranges::find_if(list, [&](const Action& a) {
              return a.kind == ActionKind::wait && same_message(a, start);
            });
            ASSERT_NE(wait, list.end());
            EXPECT_GE(wait->time - start.time, inside) << describe(config) << to_string(start);
          }
        }
      }
    }
  }
}

// Who reads theta gets that, and who reads what is predicted gets this in its place; who reads both
// in several passes gets both.
TEST(Messages, WithPredictionAreAsManyAsWithout) {
  for (int n = 2; n <= 6; ++n) {
    for (int stages = 1; stages <= 6; ++stages) {
      for (const int passes : {1, 2}) {
        for (ParallelConfig config : variants(Placement::replicated, n * passes, stages, passes)) {
          if (config.rule != RuleKind::cdp_v2) continue;
          const auto plain = messages_of(schedule_of(config), 4);
          config.predict = 1;
          const Schedule schedule = schedule_of(config);
          const auto found = messages_of(schedule, 4);
          std::int64_t both = 0;
          for (int j = 0; j < stages; ++j) {
            for (int w = 0; w < n; ++w) {
              const Rule& rule = schedule.rule();
              const bool reads_both = rule.reads_new(w, j) && rule.reads_old(w, j);
              if (reads_both && schedule.owner(j) != w) ++both;
            }
          }
          EXPECT_EQ(std::ssize(found), std::ssize(plain) + both) << describe(config);
          EXPECT_TRUE(passes > 1 || both == 0);
          for (const Travel& message : found) {
            const Action& send = message.send;
            if (send.payload == Payload::predicted) {
              EXPECT_TRUE(schedule.rule().reads_old(send.peer, send.stage));
            } else if (send.payload == Payload::parameters && !schedule.rule().always_stale()) {
              EXPECT_TRUE(schedule.rule().reads_new(send.peer, send.stage));
            }
          }
        }
      }
    }
  }
}

// They would share device 1's link if device 0 sent the one stage behind its forward.
TEST(Messages, OfV1BringParametersToDevice1BeforeItsTotal) {
  for (int n = 3; n <= 9; ++n) {
    std::int64_t parameters = -1, total = -1;
    for (const Travel& message :
         messages_of(schedule_of(parallel(RuleKind::cdp_v1, Placement::replicated, n, n)), 3)) {
      const Action& send = message.send;
      if (send.payload == Payload::parameters && message.from == 0 && send.stage == n - 1)
        parameters = send.time;
      if (send.payload == Payload::total && send.stage == n - 2) total = send.time;
    }
    ASSERT_TRUE(parameters >= 0 && total >= 0);
    const std::int64_t apart = (total - parameters) % (2 * n);
    EXPECT_EQ(apart < 0 ? apart + 2 * n : apart, 1);
  }
}

// The one stage has nothing to give way to: its owner updates and sends before its forward.
TEST(Messages, OfV1BringTheParametersOfAnOnlyStageAtOnce) {
  for (int n = 2; n <= 9; ++n) {
    const Schedule schedule = schedule_of(parallel(RuleKind::cdp_v1, Placement::replicated, n, 1));
    int sends = 0;
    for (const Travel& message : messages_of(schedule, 3)) {
      const Action& send = message.send;
      if (send.payload != Payload::parameters || message.from != schedule.owner(0)) continue;
      EXPECT_EQ(send.time % 2, schedule.rule().forward_time(schedule.owner(0), 0, 0) % 2);
      ++sends;
    }
    EXPECT_GT(sends, 0);
  }
}

TEST(Messages, OfV2CompleteAStageJustBeforeItsFirstUse) {
  for (int n = 1; n <= 9; ++n) {
    const Schedule schedule = schedule_of(parallel(RuleKind::cdp_v2, Placement::replicated, n, n));
    for (int j = 0; j < n; ++j) {
      const std::vector<Action> list = schedule.actions(n - 1 - j, {0, 4});
      const auto update = std::ranges::find_if(list, [&](const Action& a) {
        return a.kind == ActionKind::update && a.stage == j && a.step == 1;
      });
      const auto use = std::ranges::find_if(list, [&](const Action& a) {
        return a.kind == ActionKind::forward && a.stage == j && a.version == 2;
      });
      ASSERT_TRUE(update != list.end() && use != list.end());
      EXPECT_LT(update - list.begin(), use - list.begin());
      EXPECT_EQ(update->time, use->time);
      EXPECT_EQ(schedule.rule().backward_time(n - 1, j, 1) + 1, use->time);
    }
  }
}

}  // namespace
}  // namespace carousel
