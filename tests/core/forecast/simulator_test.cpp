// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The simulator against closed forms: on lists made by hand, where every time can be worked out on
// paper, and on schedules, whose step time the rules of the design give.

#include "core/forecast/simulator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/forecast/simulation_views.hpp"
#include "tests/core/plan/hand_made.hpp"
#include "tests/core/plan/schedules.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using testing::all_reduce;
using testing::all_variants;
using testing::compute;
using testing::describe;
using testing::failure;
using ::testing::HasSubstr;
using testing::Lists;
using testing::lists_of;
using testing::parallel;
using testing::post;
using testing::schedule_of;
using testing::send;
using testing::variants;
using testing::wait;

/// Powers of two make the sums exact.
constexpr Machine machine = {.flops = 1,
                             .memory_bandwidth = 1,
                             .latency_inside = 0.25,
                             .bandwidth_inside = 16,
                             .latency_between = 1,
                             .bandwidth_between = 4,
                             .devices_per_node = 4};

/// One second for every forward and backward; all else is free.
double one_per_pass(int /*device*/, const Action& action) {
  return is_pass(action) ? 1 : 0;
}

SimulationInput input_of(const Lists& lists) {
  return {.lists = lists,
          .seconds = one_per_pass,
          .machine = machine,
          .keep_actions = true,
          .keep_transfers = true};
}

/// Schedules on links that cost nothing.
SimulationInput ideal_input_of(const Lists& lists) {
  return {.lists = lists, .seconds = one_per_pass, .machine = with_ideal_links(machine)};
}

Action pass() {
  return compute(ActionKind::forward);
}

TEST(Simulator, AddsUpTheActionsOfOneDevice) {
  for (const ParallelConfig& config : variants(4, 3)) {
    if (config.placement != Placement::single) continue;
    const Lists lists = lists_of(schedule_of(config), {0, 5});
    SimulationInput input = input_of(lists);
    input.seconds = [](int, const Action& a) { return 1.0 + static_cast<int>(a.kind); };
    double sum = 0;
    for (const Action& action : lists[0]) sum += input.seconds(0, action);
    const Simulation simulation = simulate(input);
    EXPECT_EQ(simulation.seconds, sum) << describe(config);
    EXPECT_EQ(simulation.devices[0].busy, sum);
    EXPECT_EQ(simulation.devices[0].blocked, 0);
    EXPECT_EQ(simulation.steps.size(), 5U);
    EXPECT_EQ(simulation.actions[0].back().end, sum);
    // Cyclic steps overlap; what one adds to the sum is the same.
    EXPECT_EQ(simulation.seconds_per_step(2, 3), simulation.seconds_per_step(1, 2));
  }
}

TEST(Simulator, PingPongTakesLatencyAndBandwidth) {
  const Lists lists = {
      {pass(), send(1, 64), wait(send(1, 64)), post(1, 64), wait(post(1, 64))},
      {post(0, 64), wait(post(0, 64)), send(0, 64), wait(send(0, 64))},
  };
  const Simulation simulation = simulate(input_of(lists));
  EXPECT_EQ(simulation.seconds, 1 + 2 * (0.25 + 64.0 / 16));
  EXPECT_EQ(simulation.actions[1][1].begin, 0);
  EXPECT_EQ(simulation.actions[1][1].end, 5.25);
  EXPECT_EQ(simulation.devices[0].busy, 1);
  EXPECT_EQ(simulation.devices[0].blocked, 8.5);
  EXPECT_EQ(simulation.devices[1].blocked, 9.5);
  ASSERT_EQ(simulation.transfers.size(), 2U);
  EXPECT_EQ(simulation.transfers[1].from, 1);
  EXPECT_EQ(simulation.transfers[1].begin, 5.25);
  EXPECT_EQ(simulation.transfers[1].end, 9.25);
  EXPECT_EQ(simulation.transfers[1].bytes, 64);
}

TEST(Simulator, TellsNodesApart) {
  const auto seconds = [](int from, int to) {
    Lists lists(8);
    lists[from] = {send(to, 64)};
    lists[to] = {post(from, 64), wait(post(from, 64))};
    return simulate(input_of(lists)).seconds;
  };
  EXPECT_EQ(seconds(0, 3), 0.25 + 64.0 / 16);
  EXPECT_EQ(seconds(3, 4), 1 + 64.0 / 4);
  EXPECT_EQ(seconds(7, 4), 0.25 + 64.0 / 16);
}

TEST(Simulator, TokensCostLatencyAndNeedNoPort) {
  const Lists lists = {
      {send(1, 64), send(1, 0, 1)},
      {post(0, 64), post(0, 0, 1), wait(post(0, 0, 1)), wait(post(0, 64))},
  };
  const Simulation simulation = simulate(input_of(lists));
  EXPECT_EQ(simulation.actions[1][2].end, 0.25);
  EXPECT_EQ(simulation.actions[1][3].end, 4.25);
  EXPECT_EQ(simulation.transfers.size(), 1U);
}

TEST(Simulator, SendsNothingBeforeTheReceiveIsPosted) {
  const Lists lists = {
      {send(1, 16), wait(send(1, 16))},
      {pass(), pass(), post(0, 16), pass(), wait(post(0, 16))},
  };
  const Simulation simulation = simulate(input_of(lists));
  EXPECT_EQ(simulation.transfers[0].begin, 2);
  EXPECT_EQ(simulation.devices[0].blocked, 3.25);
  EXPECT_EQ(simulation.devices[1].blocked, 0.25);
}

TEST(Simulator, PortsServeOneMessageAtATime) {
  const Lists incoming = {
      {post(1, 16, 1), post(2, 16, 2), wait(post(1, 16, 1)), wait(post(2, 16, 2))},
      {send(0, 16, 1)},
      {send(0, 16, 2)},
  };
  EXPECT_EQ(simulate(input_of(incoming)).seconds, 2.25);
  const Lists outgoing = {
      {send(1, 16), send(2, 16)},
      {post(0, 16), wait(post(0, 16))},
      {post(0, 16), wait(post(0, 16))},
  };
  const Simulation simulation = simulate(input_of(outgoing));
  EXPECT_EQ(simulation.devices[1].end, 1.25);
  EXPECT_EQ(simulation.devices[2].end, 2.25);
}

TEST(Simulator, PortsAreFullDuplex) {
  const Lists lists = {
      {post(1, 16), send(1, 16), wait(post(1, 16))},
      {post(0, 16), send(0, 16), wait(post(0, 16))},
  };
  EXPECT_EQ(simulate(input_of(lists)).seconds, 1.25);
}

TEST(Simulator, QueuesInTheOrderOfReadinessAndBlocksNobodyElse) {
  // Device 0 receives 32 bytes from 1 until t = 2. Of 2 and 3, which come meanwhile, 3 is ready
  // first. Device 3 also sends to 2, which is free at once.
  const Lists lists = {
      {post(1, 32), post(2, 16), post(3, 16)},
      {send(0, 32)},
      {post(3, 16, 1), pass(), send(0, 16), wait(send(0, 16))},
      {send(0, 16), send(2, 16, 1), wait(send(2, 16, 1)), wait(send(0, 16))},
  };
  const Simulation simulation = simulate(input_of(lists));
  EXPECT_EQ(simulation.actions[3][2].end, 1.25);
  EXPECT_EQ(simulation.actions[3][3].end, 3.25);
  EXPECT_EQ(simulation.actions[2][3].end, 4.25);
  ASSERT_EQ(simulation.transfers.size(), 4U);
  EXPECT_TRUE(std::ranges::is_sorted(simulation.transfers, {}, &Transfer::begin));
}

TEST(Simulator, ReducesOverARingOrTrees) {
  const double ring4 = 2 * 3 * (0.25 + 64.0 / (4 * 16));
  std::vector<int> devices = {0, 1, 2, 3};
  EXPECT_EQ(all_reduce_seconds(machine, devices, 64), ring4);
  devices.resize(1);
  EXPECT_EQ(all_reduce_seconds(machine, devices, 64), 0);
  devices.resize(8);
  std::iota(devices.begin(), devices.end(), 0);
  // Two nodes: trees of three hops inside and one between, which each half of the bytes takes once
  // in either direction.
  EXPECT_EQ(all_reduce_seconds(machine, devices, 6400), 2 * (3 * 0.25 + 1) + 6400.0 / (4 * 4));
  // Three latencies and quarters inside, then one between nodes, with a quarter of the bytes.
  EXPECT_EQ(scatter_seconds(machine, devices, 6400),
            3 * 0.25 + 3.0 / 4 * 6400 / 16 + 1 + 1.0 / 2 * (6400.0 / 4) / 4);
  // One device on every node: halves of halves, as many bytes in as few latencies as a tree has.
  const std::vector<int> apart = {0, 4, 8, 12, 16, 20, 24, 28};
  EXPECT_EQ(scatter_seconds(machine, apart, 6400), 3 * 1 + 7.0 / 8 * 6400 / 4);
  // One device of the other node: it alone has a link to there.
  devices.resize(5);
  const double there = 2 * 1 + 2 * 0.25;
  EXPECT_EQ(all_reduce_seconds(machine, devices, 6400), 2 * (2 * 0.25 + 1) + 6400.0 / 4);
  EXPECT_EQ(scatter_seconds(machine, devices, 6400), there + 4.0 / 5 * 6400 / 4);
  EXPECT_EQ(chain_seconds(machine, devices, 6400), there + 6400.0 / 4);
  // Three nodes: a ring for each of the four devices of a node, with three latencies between nodes
  // and nine inside, of which nothing goes through the last, or trees with two hops between.
  devices.resize(12);
  std::iota(devices.begin(), devices.end(), 0);
  EXPECT_DOUBLE_EQ(all_reduce_seconds(machine, devices, 6400),
                   2 * (3 * 1 + 8 * 0.25 + 11.0 / 12 * (6400.0 / (4 * 4))));
  EXPECT_EQ(all_reduce_seconds(machine, devices, 64), 2 * (3 * 0.25 + 2 * 1 + 64.0 / (4 * 4)));

  // All begin when the last has come.
  Lists lists(4, {all_reduce(64), wait(all_reduce(64))});
  lists[2].insert(lists[2].begin(), pass());
  const Simulation simulation = simulate(input_of(lists));
  EXPECT_EQ(simulation.seconds, 1 + ring4);
  EXPECT_EQ(simulation.devices[0].blocked, 1 + ring4);
  EXPECT_EQ(simulation.devices[2].blocked, ring4);
  ASSERT_EQ(simulation.transfers.size(), 4U);
  EXPECT_EQ(simulation.transfers[3].from, 3);
  EXPECT_EQ(simulation.transfers[3].to, 0);
  EXPECT_EQ(simulation.transfers[3].bytes, 64 * 6 / 4);
}

TEST(Simulator, BroadcastsAndReducesAlongAChain) {
  const double chain4 = 3 * 0.25 + 64.0 / 16;
  for (const ActionKind kind : {ActionKind::broadcast, ActionKind::reduce}) {
    const Action start = testing::chain(kind, 2, 64);
    const Lists lists(4, {start, wait(start)});
    const Simulation simulation = simulate(input_of(lists));
    EXPECT_EQ(simulation.seconds, chain4);
    // Nothing goes into the root of a broadcast, and nothing leaves that of a reduction.
    ASSERT_EQ(simulation.transfers.size(), 3U);
    for (const Transfer& transfer : simulation.transfers) {
      EXPECT_EQ(transfer.bytes, 64);
      EXPECT_NE(kind == ActionKind::broadcast ? transfer.to : transfer.from, 2);
    }
  }
  EXPECT_EQ(chain_seconds(machine, std::vector{5}, 64), 0);
}

TEST(Simulator, MessagesAndCollectivesShareThePorts) {
  const Lists lists = {
      {send(1, 16), all_reduce(32), wait(all_reduce(32))},
      {post(0, 16), all_reduce(32), send(0, 16, 1), wait(all_reduce(32))},
  };
  EXPECT_EQ(simulate(input_of(lists)).seconds, 1 + 2 * (0.25 + 32.0 / (2 * 16)));
}

TEST(Simulator, DpAllReducesAtTheEndOfTheStep) {
  ParallelConfig config = parallel(RuleKind::dp, Placement::replicated, 4, 3);
  config.reduction = Reduction::fast;
  const Lists lists = lists_of(schedule_of(config), {0, 4});
  EXPECT_EQ(simulate(input_of(lists)).seconds_per_step(1, 3),
            2 * 3 + 2 * 3 * (0.25 + 64.0 * (1 + 2 + 3) / (4 * 16)));
}

/// Time steps of a training step. A device that has all stages of a micro-batch takes 2 S; a stage
/// that has all micro-batches takes 2 N, and 1F1B fills and drains the pipeline: a bubble of
/// (S - 1) / (N + S - 1) (Narayanan et al. 2021). A cyclic rule has no bubble.
int time_steps(const ParallelConfig& config) {
  const int n = config.micro_batches;
  const int stages = config.stages;
  if (config.placement == Placement::single) return 2 * n * stages;
  if (config.placement != Placement::pipeline) return 2 * stages;
  return config.rule == RuleKind::dp ? 2 * (n + stages - 1) : 2 * n;
}

TEST(Simulator, StepsTakeTheirClosedFormOnIdealLinks) {
  for (int stages : {1, 2, 3, 4, 7, 16}) {
    for (int n : {stages, 2 * stages}) {
      for (const ParallelConfig& config : all_variants(n, stages)) {
        const Schedule schedule = schedule_of(config);
        const Lists lists = lists_of(schedule, {0, 12});
        SimulationInput input = ideal_input_of(lists);
        input.groups = schedule.groups();
        const Simulation simulation = simulate(input);
        // The last updates of a segment do not wait for passes of later steps.
        EXPECT_EQ(simulation.seconds_per_step(4, 8), time_steps(config)) << describe(config);
        double busy = 0;
        for (const DeviceTimes& device : simulation.devices) busy += device.busy;
        EXPECT_EQ(busy, 12.0 * n * 2 * stages);
      }
    }
  }
}

// All others come to wait for it: at once in dp, and once the slack between them is used up in
// cyclic rules, whose devices wait only for what they need.
TEST(Simulator, OneSlowDeviceSlowsAll) {
  for (RuleKind rule : {RuleKind::dp, RuleKind::cdp_v1, RuleKind::cdp_v2}) {
    for (int slow = 0; slow < 4; ++slow) {
      const ParallelConfig config = parallel(rule, Placement::replicated, 4, 4);
      const Lists lists = lists_of(schedule_of(config), {0, 200});
      SimulationInput input = ideal_input_of(lists);
      input.slowness.assign(4, 1);
      input.slowness[slow] = 1.3;
      EXPECT_NEAR(simulate(input).seconds_per_step(150, 190), 1.3 * 8, 1e-9)
          << describe(config) << ", slow device " << slow;
    }
  }
}

TEST(Simulator, JitterIsAFunctionOfItsSeed) {
  const Lists lists = {std::vector<Action>(4000, pass())};
  SimulationInput input = input_of(lists);
  input.jitter = 0.5;
  const Simulation once = simulate(input);
  EXPECT_EQ(simulate(input).seconds, once.seconds);
  input.seed = 2;
  EXPECT_NE(simulate(input).seconds, once.seconds);

  double squares = 0;
  for (const Interval& action : once.actions[0]) {
    const double seconds = action.end - action.begin;
    EXPECT_GE(seconds, 0.5 - 1e-9);
    squares += (seconds - 1) * (seconds - 1);
  }
  EXPECT_NEAR(once.seconds / 4000, 1, 0.03);
  EXPECT_NEAR(std::sqrt(squares / 4000), 0.5, 0.05);
}

TEST(Simulator, NamesADeadlock) {
  const auto message = [](const Lists& lists) {
    return failure(ExitCode::internal, [&] { static_cast<void>(simulate(input_of(lists))); });
  };
  EXPECT_THAT(message({{send(1, 8), wait(send(1, 8)), post(1, 8)},
                       {send(0, 8), wait(send(0, 8)), post(0, 8)}}),
              HasSubstr("device 0, action 1: t=0    step 0   wait       gradient stage 0 to device "
                        "1 8 bytes: waits for ever"));
  EXPECT_THAT(message({{pass()}, {post(0, 8), wait(post(0, 8))}}), HasSubstr("device 1, action 1"));
  EXPECT_THAT(message({{all_reduce(8), wait(all_reduce(8))}, {}}), HasSubstr("device 0, action 1"));
}

// Design, section 2: v2 has no time for its diagonal; slack and v1 give it some, if no message
// takes longer than 0.7 passes. dp sends everything at the end of the step.
TEST(Simulator, ExposesTheDiagonalOfV2) {
  const auto exposed = [](RuleKind rule, int slack, double seconds_of_largest) {
    const ParallelConfig config = parallel(rule, Placement::replicated, 4, 4, slack);
    const Lists lists = lists_of(schedule_of(config), {0, 16});
    SimulationInput input = ideal_input_of(lists);
    input.machine.bandwidth_inside = 64 * 4 / seconds_of_largest;
    return exposed_communication(input, 6, 12).exposed();
  };
  for (RuleKind rule : {RuleKind::dp, RuleKind::cdp_v1, RuleKind::cdp_v2})
    EXPECT_EQ(exposed(rule, 0, 0), 0);
  for (double seconds : {0.5, 0.7}) {
    EXPECT_NEAR(exposed(RuleKind::cdp_v1, 0, seconds), 0, 1e-9);
    EXPECT_NEAR(exposed(RuleKind::cdp_v2, 1, seconds), 0, 1e-9);
  }
  EXPECT_GT(exposed(RuleKind::cdp_v2, 0, 0.5), 0);
  EXPECT_GT(exposed(RuleKind::dp, 0, 0.5), exposed(RuleKind::cdp_v2, 0, 0.5));
}

TEST(Simulator, CyclicActivationsAreConstant) {
  constexpr int n = 6;
  const ParallelConfig config = parallel(RuleKind::cdp_v2, Placement::replicated, n, n);
  const Lists lists = lists_of(schedule_of(config), {0, 8});
  SimulationInput input = ideal_input_of(lists);
  input.keep_actions = true;
  const Simulation simulation = simulate(input);
  const std::vector<std::int64_t> bytes = {1, 10, 100, 1000, 10000, 100000};
  const std::vector<MemoryPoint> points = activations_over_time(lists, simulation.actions, bytes);
  for (const MemoryPoint& point : points) {
    if (point.seconds < 2 * n || point.seconds >= 2 * n * 7) continue;
    EXPECT_EQ(point.bytes, 123456) << point.seconds;  // N - j frames of stage j
  }
  EXPECT_EQ(points.back().bytes, 0);
}

TEST(Simulator, SpreadsTheBytesOfALinkOverTime) {
  const std::vector<Transfer> transfers = {{0, 4, 0, 1, 64}, {5, 6, 0, 1, 8}, {1, 2, 1, 0, 8}};
  const std::vector<LinkLoad> loads = link_loads(transfers, {.begin = 1, .width = 2, .count = 3});
  ASSERT_EQ(loads.size(), 2U);
  EXPECT_EQ(loads[0].from, 0);
  EXPECT_EQ(loads[0].to, 1);
  EXPECT_THAT(loads[0].bytes, ::testing::ElementsAre(32, 16, 8));
  EXPECT_THAT(loads[1].bytes, ::testing::ElementsAre(8, 0, 0));
}

TEST(Simulator, KeepsNothingUnasked) {
  const Lists lists = {{send(1, 16)}, {post(0, 16)}};
  SimulationInput input = input_of(lists);
  input.keep_actions = input.keep_transfers = false;
  const Simulation simulation = simulate(input);
  EXPECT_TRUE(simulation.actions.empty());
  EXPECT_TRUE(simulation.transfers.empty());
}

}  // namespace
}  // namespace carousel
