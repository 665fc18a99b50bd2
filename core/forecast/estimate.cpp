// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/forecast/estimate.hpp"

#include <algorithm>
#include <map>

#include "core/forecast/exchanges.hpp"
#include "core/forecast/routes.hpp"

namespace carousel {
namespace {

using Lists = std::vector<std::vector<Action>>;

/// Walks all lists as far as they go, in turn. It spreads the bytes of messages over the time steps
/// that they have, and counts on every device the messages that came one after the other since it
/// last computed. A message that has the passes of a time step between its send and its wait may
/// travel while the devices compute, and is not counted.
class MessageWalk {
 public:
  MessageWalk(const Schedule& schedule, const Lists& lists)
      : lists_(lists),
        exchanges_(match_exchanges(lists, schedule.groups())),
        states_(exchanges_.all.size()),
        next_(lists.size()),
        computed_(lists.size(), -1),
        hops_(lists.size()) {}

  void run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t d = 0; d < lists_.size(); ++d) {
        for (; next_[d] < lists_[d].size() && advance(d); ++next_[d]) moved = true;
      }
    }
  }

  [[nodiscard]] int longest() const { return longest_; }

  /// Largest over mean of the bytes per time step, from `begin` to before `end`.
  [[nodiscard]] double unevenness(std::int64_t begin, std::int64_t end) const {
    double sum = 0;
    double most = 0;
    for (auto at = bytes_.lower_bound(begin); at != bytes_.lower_bound(end); ++at) {
      sum += at->second;
      most = std::max(most, at->second);
    }
    return sum > 0 ? most * static_cast<double>(end - begin) / sum : 0;
  }

 private:
  struct State {
    int started = 0;  // ends, receivers excepted
    int hops = 0;
    std::int64_t next_pass = 0;  // time step
  };

  bool advance(std::size_t d) {
    const Action& action = lists_[d][next_[d]];
    const int id = exchanges_.of[d][next_[d]];
    if (id < 0) {
      if (!is_pass(action)) return true;
      hops_[d] = 0;
      computed_[d] = action.time;
      return true;
    }
    const Exchange& exchange = exchanges_.all[id];
    const bool joint = exchange.group >= 0;
    State& state = states_[id];
    if (action.kind != ActionKind::wait) {
      if (action.kind == ActionKind::post) return true;
      ++state.started;
      state.hops = std::max(state.hops, hops_[d]);
      state.next_pass = std::max(state.next_pass, next_pass(d, action));
      return true;
    }
    if (action.direction == Direction::send) return true;
    const int needed = joint ? static_cast<int>(exchanges_.groups[exchange.group].size()) : 1;
    if (state.started < needed) return false;
    const int own = joint ? hops_of(exchange.kind, needed) : 1;
    // A token delays on purpose, and carries nothing.
    const bool hides = action.payload == Payload::token || next_pass(d, action) > state.next_pass;
    if (!hides) hops_[d] = std::max(hops_[d], state.hops + own);
    longest_ = std::max(longest_, hops_[d]);
    if (!joint || exchange.from == static_cast<int>(d)) {
      const double links = joint ? hops_of(exchange.kind, needed) : 1;
      spread(links * static_cast<double>(action.bytes), state.next_pass, next_pass(d, action));
    }
    return true;
  }

  /// The time step of the next pass that could run on the device of this action.
  [[nodiscard]] std::int64_t next_pass(std::size_t d, const Action& action) const {
    return action.time + (computed_[d] == action.time ? 1 : 0);
  }

  void spread(double bytes, std::int64_t begin, std::int64_t end) {
    end = std::max(end, begin + 1);
    for (std::int64_t time = begin; time < end; ++time)
      bytes_[time] += bytes / static_cast<double>(end - begin);
  }

  const Lists& lists_;
  Exchanges exchanges_;
  std::vector<State> states_;
  std::vector<std::size_t> next_;
  std::vector<std::int64_t> computed_;    // [device] time step of its last pass
  std::vector<int> hops_;                 // [device]
  std::map<std::int64_t, double> bytes_;  // by time step
  int longest_ = 0;
};

/// Activations in use on all devices at the pace of the rule: a frame from the time step of its
/// forward to that of its release.
std::int64_t held_at_once(const Lists& lists, const std::vector<StageMemory>& stages) {
  std::map<std::int64_t, std::int64_t> changes;  // by time step
  for (const std::vector<Action>& list : lists) {
    for (const Action& action : list) {
      if (action.kind == ActionKind::forward)
        changes[action.time] += align_up(stages[action.stage].frame_bytes);
      if (action.kind == ActionKind::release)
        changes[action.time + 1] -= align_up(stages[action.stage].frame_bytes);
    }
  }
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, now += change);
  return most;
}

}  // namespace

std::int64_t held_at_once(const Schedule& schedule, const std::vector<StageMemory>& stages) {
  return held_at_once(schedule.lists(SteadySteps().segment()), stages);
}

Estimate estimate(const Schedule& schedule, const MemoryPlan& memory,
                  const std::optional<Speeds>& speeds) {
  Estimate result{.parallel = schedule.parallel(), .devices = schedule.devices()};
  for (const DeviceMemoryPlan& device : memory.devices) {
    result.fullest = std::max(result.fullest, device.total());
    for (int c = 0; c < category_count; ++c) {
      result.largest[c] = std::max(result.largest[c], device.bytes[c]);
      result.all[c] += device.bytes[c];
    }
  }
  const SteadySteps usual;
  const std::int64_t first = usual.first;
  const Lists lists = schedule.lists(usual.segment());
  result.sent = sum_of(routes_of(schedule, lists, first));
  result.busy = busy_fraction(schedule, lists, first);
  result.held = held_at_once(lists, memory.stages);
  MessageWalk walk(schedule, lists);
  walk.run();
  result.longest = walk.longest();
  result.unevenness =
      walk.unevenness(first * schedule.period_time(), (first + 1) * schedule.period_time());
  if (speeds) {
    const SteadySteps steady = steady_steps(schedule, *speeds);
    const Lists longer = schedule.lists(steady.segment());
    result.seconds =
        exposed_communication(simulation_of(schedule, longer, *speeds), steady.first, steady.last);
  }
  return result;
}

}  // namespace carousel
