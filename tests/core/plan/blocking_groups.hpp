// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What NCCL would make of lists with rounds: groups of calls without tags, one after the other on
// every device, each over when all of its calls have met theirs. It knows nothing of how rounds
// are made or proven.

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/plan/action.hpp"

namespace carousel::testing {

class BlockingGroups {
 public:
  BlockingGroups(const std::vector<std::vector<Action>>& lists,
                 const std::vector<std::vector<int>>& groups)
      : lists_(lists), groups_(groups), devices_(lists.size()) {}

  /// Runs all lists; returns what went wrong, or nothing.
  std::string run() {
    for (bool moved = true; moved && error_.empty();) {
      moved = false;
      for (int d = 0; d < std::ssize(devices_); ++d) {
        while (error_.empty() && devices_[d].next < lists_[d].size() &&
               step(d, lists_[d][devices_[d].next])) {
          ++devices_[d].next;
          moved = true;
        }
        moved = go_on(d) || moved;
      }
    }
    for (int d = 0; d < std::ssize(devices_) && error_.empty(); ++d) {
      if (devices_[d].next < lists_[d].size())
        error_ =
            fmt::format("device {} waits for ever: {}", d, to_string(lists_[d][devices_[d].next]));
    }
    return error_;
  }

  /// Groups that had any call, of all devices.
  [[nodiscard]] int groups_run() const { return groups_run_; }

 private:
  enum class State { told, ready, calling, met };
  struct Call {
    int device = 0;
    Action action;
    State state = State::told;
  };
  struct Device {
    std::size_t next = 0;
    std::deque<Call*> open;    // not yet waited for
    std::vector<Call*> group;  // under way
  };

  bool step(int d, const Action& action) {
    Device& device = devices_[d];
    if (starts_message(action)) {
      calls_.push_back({d, action});
      device.open.push_back(&calls_.back());
    } else if (action.kind == ActionKind::exchange) {
      for (Call* call : device.open) {
        if (call->state == State::told && call->action.round <= action.round)
          call->state = State::ready;
      }
    } else if (action.kind == ActionKind::wait) {
      const auto call = std::ranges::find_if(
          device.open, [&](const Call* c) { return same_message(c->action, action); });
      if (call == device.open.end()) {
        error_ = "waits for nothing: " + to_string(action);
        return false;
      }
      const bool over = (*call)->state == State::met &&
                        std::ranges::find(device.group, *call) == device.group.end();
      if (!over) return false;
      device.open.erase(call);
    }
    return true;
  }

  bool go_on(int d) {
    Device& device = devices_[d];
    if (std::ranges::any_of(device.group, [](Call* c) { return c->state != State::met; }))
      return false;
    const bool ended = !device.group.empty();
    device.group.clear();
    const Call* first = nullptr;
    for (const Call* call : device.open) {
      if (call->state == State::ready &&
          (first == nullptr || call->action.round < first->action.round))
        first = call;
    }
    if (first == nullptr) return ended;
    for (Call* call : device.open) {
      if (call->state == State::ready && call->action.round == first->action.round)
        device.group.push_back(call);
    }
    std::ranges::stable_sort(device.group, {}, [](const Call* call) {
      return std::tuple(call->action.payload, call->action.stage, call->action.piece);
    });
    ++groups_run_;
    for (Call* call : device.group) {
      call->state = State::calling;
      is_collective(call->action) ? join(call) : meet(call);
    }
    return true;
  }

  /// First come, first served, between two devices in one direction.
  void meet(Call* call) {
    const bool sends = call->action.direction == Direction::send;
    const std::pair line = sends ? std::pair(call->device, call->action.peer)
                                 : std::pair(call->action.peer, call->device);
    std::deque<Call*>& waiting = lines_[line];
    if (waiting.empty() || waiting.front()->action.direction == call->action.direction) {
      waiting.push_back(call);
      return;
    }
    Call* other = waiting.front();
    waiting.pop_front();
    const Action& a = call->action;
    const Action& b = other->action;
    if (a.payload != b.payload || a.stage != b.stage || a.piece != b.piece || a.step != b.step ||
        a.micro_batch != b.micro_batch || a.version != b.version || a.bytes != b.bytes)
      error_ = fmt::format("{} meets {}", to_string(a), to_string(b));
    call->state = other->state = State::met;
  }

  void join(Call* call) {
    const int group = call->action.group;
    std::map<int, std::deque<Call*>>& queues = joined_[group];
    queues[call->device].push_back(call);
    for (const int member : groups_[group]) {
      if (queues[member].empty()) return;
    }
    for (const int member : groups_[group]) {
      Call* one = queues[member].front();
      queues[member].pop_front();
      one->state = State::met;
      if (one->action.payload != call->action.payload || one->action.stage != call->action.stage ||
          one->action.step != call->action.step || one->action.kind != call->action.kind)
        error_ = fmt::format("{} meets {}", to_string(one->action), to_string(call->action));
    }
  }

  const std::vector<std::vector<Action>>& lists_;
  const std::vector<std::vector<int>>& groups_;
  std::vector<Device> devices_;
  std::deque<Call> calls_;
  std::map<std::pair<int, int>, std::deque<Call*>> lines_;
  std::map<int, std::map<int, std::deque<Call*>>> joined_;
  int groups_run_ = 0;
  std::string error_;
};

}  // namespace carousel::testing
