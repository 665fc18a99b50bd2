// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/rounds.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "core/base/check.hpp"

namespace carousel {
namespace {

using Groups = std::vector<std::vector<int>>;

Round later(Round round, std::int64_t time_steps) {
  return {round.time + time_steps, round.hop};
}

/// Lets all devices run as far as they can, in turn, as the checker does: what a device waits for
/// has its round by then.
class Assignment {
 public:
  Assignment(std::vector<std::vector<ProgramStep>>& lists, const Groups& groups)
      : lists_(lists), groups_(groups), devices_(lists.size()), calls_(groups.size()) {
    for (Device& device : devices_) device.calls.resize(groups.size());
  }

  /// Whether any start has a later round than it had, or has one only now.
  bool run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t d = 0; d < lists_.size(); ++d) {
        for (Device& device = devices_[d]; device.next < lists_[d].size(); ++device.next) {
          if (!step(static_cast<int>(d), lists_[d][device.next])) break;
          moved = true;
        }
      }
    }
    for (std::size_t d = 0; d < lists_.size(); ++d)
      CAROUSEL_CHECK(devices_[d].next == lists_[d].size(), "device {} waits for ever: {}", d,
                     to_string(lists_[d][devices_[d].next].action));
    return raised_;
  }

 private:
  /// A message at one of its ends, or a device's part in a collective, until its wait.
  struct Started {
    ProgramStep* step = nullptr;
    Round behind;  // what the device had waited for before
    Round round = {};
  };
  struct Device {
    std::size_t next = 0;
    Round waited = {std::numeric_limits<std::int64_t>::min(), 0};
    std::vector<std::size_t> open = {};   // into started_
    std::vector<std::size_t> calls = {};  // [group] so far
  };

  bool step(int d, ProgramStep& step) {
    Device& device = devices_[d];
    const Action& action = step.action;
    if (action.kind == ActionKind::wait) {
      const auto found = std::ranges::find_if(device.open, [&](std::size_t k) {
        return same_message(started_[k].step->action, action);
      });
      CAROUSEL_CHECK(found != device.open.end(), "device {} waits for what was never started: {}",
                     d, to_string(action));
      const Round round = started_[*found].round;
      if (!round.exists()) return false;
      device.waited = std::max(device.waited, round);
      device.open.erase(found);
    } else if (starts_message(action)) {
      const std::size_t mine = started_.size();
      started_.push_back({&step, device.waited});
      device.open.push_back(mine);
      if (is_collective(action))
        join(d, mine);
      else
        meet(d, mine);
    }
    return true;
  }

  /// Messages between two devices about the same thing keep their order.
  void meet(int d, std::size_t mine) {
    const Action& a = started_[mine].step->action;
    for (const std::size_t other : devices_[a.peer].open) {
      const Action& b = started_[other].step->action;
      if (started_[other].round.exists() || b.peer != d || b.direction == a.direction ||
          b.payload != a.payload || b.stage != a.stage || b.piece != a.piece ||
          b.direction == Direction::none)
        continue;
      return settle({mine, other});
    }
  }

  /// A collective is settled by the last device of its group.
  void join(int d, std::size_t mine) {
    const auto group = static_cast<std::size_t>(started_[mine].step->action.group);
    const std::size_t ordinal = devices_[d].calls[group]++;
    std::vector<std::vector<std::size_t>>& calls = calls_[group];
    if (ordinal == calls.size()) calls.emplace_back();
    calls[ordinal].push_back(mine);
    if (calls[ordinal].size() == groups_[group].size()) settle(calls[ordinal]);
  }

  void settle(const std::vector<std::size_t>& ends) {
    Round round = {std::numeric_limits<std::int64_t>::min(), 0};
    for (const std::size_t k : ends) {
      const Started& end = started_[k];
      round = std::max(round, {end.step->action.time, 0});
      round = std::max(round, {end.behind.time, end.behind.hop + 1});
      const Round before = end.step->origin->round;
      if (before.exists()) round = std::max(round, later(before, end.step->later));
    }
    for (const std::size_t k : ends) {
      Started& end = started_[k];
      end.round = round;
      const Round own = later(round, -end.step->later);
      raised_ = raised_ || end.step->origin->round != own;
      end.step->origin->round = own;
    }
  }

  std::vector<std::vector<ProgramStep>>& lists_;
  const Groups& groups_;
  std::vector<Device> devices_;
  std::vector<Started> started_;
  std::vector<std::vector<std::vector<std::size_t>>> calls_;  // [group][ordinal] of each device
  bool raised_ = false;
};

/// Behind each action, up to which round all starts are over that are not before it already; none
/// where nothing new is.
std::vector<Round> complete_behind(const std::vector<Round>& starts) {
  std::vector<std::optional<Round>> open(starts.size() + 1);  // the first of those to come
  for (std::size_t k = starts.size(); k-- > 0;) {
    open[k] = open[k + 1];
    if (starts[k].exists()) open[k] = std::min(open[k].value_or(starts[k]), starts[k]);
  }
  std::vector<Round> result(starts.size());
  std::set<Round> waiting;
  for (std::size_t k = 0; k < starts.size(); ++k) {
    if (starts[k].exists()) waiting.insert(starts[k]);
    const auto end = open[k + 1] ? waiting.lower_bound(*open[k + 1]) : waiting.end();
    if (end == waiting.begin()) continue;
    result[k] = *std::prev(end);
    waiting.erase(waiting.begin(), end);
  }
  return result;
}

/// The action that starts what is complete behind another one.
Action exchange_behind(const Action& last, Round round) {
  return {.kind = ActionKind::exchange, .time = last.time, .step = last.step, .round = round};
}

void add_exchanges(std::vector<Action>& list) {
  std::vector<Round> starts;
  for (const Action& action : list) starts.push_back(action.round);
  const std::vector<Round> complete = complete_behind(starts);
  std::vector<Action> result;
  for (std::size_t k = 0; k < list.size(); ++k) {
    result.push_back(list[k]);
    if (complete[k].exists()) result.push_back(exchange_behind(list[k], complete[k]));
  }
  list = std::move(result);
}

/// Behind which actions of programs what is complete, as one period of the lists shows it.
std::map<const Action*, Round> complete_in(const std::vector<std::vector<ProgramStep>>& lists,
                                           std::int64_t period) {
  std::map<const Action*, Round> result;
  for (const std::vector<ProgramStep>& list : lists) {
    std::vector<Round> starts;
    for (const ProgramStep& step : list)
      starts.push_back(step.origin->round.exists() ? later(step.origin->round, step.later)
                                                   : Round{});
    const std::vector<Round> complete = complete_behind(starts);
    for (std::size_t k = 0; k < list.size(); ++k) {
      if (list[k].later == period && complete[k].exists())
        result[list[k].origin] = later(complete[k], -period);
    }
  }
  return result;
}

}  // namespace

void add_rounds(std::vector<std::vector<Action>>& lists, const Groups& groups) {
  std::vector<std::vector<ProgramStep>> steps(lists.size());
  for (std::size_t d = 0; d < lists.size(); ++d) {
    for (Action& action : lists[d]) steps[d].push_back({action, &action});
  }
  Assignment(steps, groups).run();
  for (std::vector<Action>& list : lists) add_exchanges(list);
}

void add_rounds(std::vector<std::vector<ProgramStep>>& lists, const Groups& groups,
                std::int64_t period, std::vector<Program>& programs) {
  // At its ends a segment has fewer waits: there, a round may be before that of the same action in
  // the middle, and with it all that follow.
  int tries = 0;
  while (Assignment(lists, groups).run()) CAROUSEL_CHECK(++tries < 100, "rounds move for ever");
  const std::map<const Action*, Round> complete = complete_in(lists, period);
  for (Program& program : programs) {
    std::vector<ProgramAction> actions;
    for (const ProgramAction& what : program.actions) {
      actions.push_back(what);
      const auto found = complete.find(&what.action);
      if (found != complete.end())
        actions.push_back({exchange_behind(what.action, found->second), what.turns});
    }
    program.actions = std::move(actions);
  }
}

}  // namespace carousel
