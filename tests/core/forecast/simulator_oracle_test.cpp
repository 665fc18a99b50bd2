// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The simulator against an obvious one that looks at every tick of a clock at everything that might
// happen, on thousands of random lists with crowded ports.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "core/forecast/exchanges.hpp"
#include "core/forecast/simulator.hpp"
#include "tests/core/plan/hand_made.hpp"
#include "tests/core/plan/schedules.hpp"

namespace carousel {
namespace {

using testing::Lists;

// Whole seconds: bytes are seconds.
constexpr Machine machine = {.flops = 1,
                             .memory_bandwidth = 1,
                             .latency_inside = 1,
                             .bandwidth_inside = 1,
                             .latency_between = 1,
                             .bandwidth_between = 1,
                             .devices_per_node = 64};

double seconds_of(int /*device*/, const Action& action) {
  return action.stage;
}

/// Random lists without deadlocks: all devices start what they share in one order, and wait for it
/// at any later place.
Lists random_lists(std::mt19937& random, int devices) {
  const auto below = [&](int end) { return static_cast<int>(random() % end); };
  Lists lists(devices);
  const auto start = [&](int device, const Action& action) {
    std::vector<Action>& list = lists[device];
    const int passes = below(3);
    for (int k = 0; k < passes; ++k)
      list.push_back(testing::compute(ActionKind::forward, below(4)));
    list.push_back(action);
  };
  for (int message = 0; message < 20; ++message) {
    if (below(8) == 0) {
      const std::int64_t bytes = std::int64_t{devices} * below(4);
      for (int d = 0; d < devices; ++d) start(d, testing::all_reduce(bytes, message));
      continue;
    }
    const int from = below(devices);
    const int to = (from + 1 + below(devices - 1)) % devices;
    const int bytes = below(6);
    start(from, testing::send(to, bytes, message));
    start(to, testing::post(from, bytes, message));
  }
  for (std::vector<Action>& list : lists) {
    for (std::size_t k = 0; k < list.size(); ++k) {
      if (list[k].payload == Payload::none || list[k].kind == ActionKind::wait) continue;
      const Action wait = testing::wait(list[k]);
      const auto later = static_cast<std::ptrdiff_t>(k + 1 + random() % (list.size() - k));
      list.insert(list.begin() + later, wait);
    }
  }
  return lists;
}

/// Everything in whole seconds.
class Ticking {
 public:
  explicit Ticking(const Lists& lists)
      : lists_(lists),
        exchanges_(match_exchanges(lists, {})),
        states_(exchanges_.all.size()),
        now_(lists.size(), 0),
        next_(lists.size(), 0),
        ends_(lists.size()),
        free_(2 * lists.size(), 0) {}

  std::vector<std::vector<int>> run() {
    for (int time = 0; !done(); ++time) {
      for (int d = 0; d < std::ssize(lists_); ++d) advance(d, time);
      while (begin_one(time)) continue;
    }
    return ends_;
  }

 private:
  struct State {
    int started = 0;
    int ready = 0;
    int complete = -1;
  };

  [[nodiscard]] bool done() const {
    for (std::size_t d = 0; d < lists_.size(); ++d)
      if (next_[d] < lists_[d].size()) return false;
    return true;
  }

  void advance(int d, int time) {
    for (; next_[d] < lists_[d].size() && now_[d] <= time; ++next_[d]) {
      const Action& action = lists_[d][next_[d]];
      const int exchange = exchanges_.of[d][next_[d]];
      now_[d] = time;
      if (action.kind == ActionKind::wait) {
        const int complete = states_[exchange].complete;
        if (complete < 0 || complete > time) return;
      } else if (exchange >= 0) {
        ++states_[exchange].started;
        states_[exchange].ready = time;
      } else {
        now_[d] += action.stage;
      }
      ends_[d].push_back(now_[d]);
    }
  }

  [[nodiscard]] std::vector<int> ports(const Exchange& exchange) const {
    if (exchange.group < 0) return {2 * exchange.from, 2 * exchange.to + 1};
    std::vector<int> all(free_.size());
    for (std::size_t k = 0; k < all.size(); ++k) all[k] = static_cast<int>(k);
    return all;
  }

  /// Begins the first of all exchanges that could.
  bool begin_one(int time) {
    int best = -1;
    const auto order = [&](int e) {
      const Exchange& exchange = exchanges_.all[e];
      return std::tuple(states_[e].ready, exchange.from, exchange.index);
    };
    for (int e = 0; e < std::ssize(states_); ++e) {
      const Exchange& exchange = exchanges_.all[e];
      const int participants = exchange.group < 0 ? 2 : static_cast<int>(lists_.size());
      if (states_[e].started < participants || states_[e].complete >= 0) continue;
      const std::vector<int> needed = ports(exchange);
      const bool queues = exchange.group >= 0 || exchange.bytes > 0;
      if (queues && std::ranges::any_of(needed, [&](int port) { return free_[port] > time; }))
        continue;
      if (best < 0 || order(e) < order(best)) best = e;
    }
    if (best < 0) return false;
    const Exchange& exchange = exchanges_.all[best];
    const int p = static_cast<int>(lists_.size());
    const int bytes = static_cast<int>(exchange.bytes);
    // Inside of one node nothing is faster than a ring.
    const int ring = 2 * (p - 1) * (1 + bytes / p);
    const int busy = exchange.group < 0 ? bytes : ring;
    states_[best].complete = time + busy + (exchange.group < 0 ? 1 : 0);
    if (busy > 0)
      for (const int port : ports(exchange)) free_[port] = time + busy;
    return true;
  }

  const Lists& lists_;
  Exchanges exchanges_;
  std::vector<State> states_;
  std::vector<int> now_;
  std::vector<std::size_t> next_;
  std::vector<std::vector<int>> ends_;
  std::vector<int> free_;
};

TEST(SimulatorOracle, AgreesOnRandomLists) {
  std::mt19937 random(20261121);
  for (int trial = 0; trial < 3000; ++trial) {
    const Lists lists = random_lists(random, 2 + static_cast<int>(random() % 5));
    const std::vector<std::vector<int>> expected = Ticking(lists).run();
    const Simulation simulation =
        simulate({.lists = lists, .seconds = seconds_of, .machine = machine, .keep_actions = true});
    for (std::size_t d = 0; d < lists.size(); ++d) {
      ASSERT_EQ(expected[d].size(), lists[d].size());
      for (std::size_t k = 0; k < lists[d].size(); ++k)
        ASSERT_EQ(simulation.actions[d][k].end, expected[d][k])
            << "trial " << trial << ", " << action_name(static_cast<int>(d), k, lists[d][k]);
    }
  }
}

}  // namespace
}  // namespace carousel
