// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/proof/checker.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/base/check.hpp"
#include "core/proof/action_fields.hpp"
#include "core/proof/symbolic_device.hpp"

namespace carousel {
namespace {

/// Lets all devices run as far as they can, in turn, until nothing moves: with messages that keep
/// their order, the outcome does not depend on who runs when.
class Execution {
 public:
  Execution(const Schedule& schedule, const Segment& segment,
            const std::vector<std::vector<Action>>& lists)
      : schedule_(schedule),
        segment_(segment),
        lists_(lists),
        positions_(schedule.devices()),
        collectives_(schedule.groups().size()) {
    for (int d = 0; d < schedule.devices(); ++d) devices_.emplace_back(schedule, segment, d);
  }

  std::optional<Fault> run() {
    const int devices = static_cast<int>(positions_.size());
    bool moved = true;
    while (moved) {
      moved = false;
      for (int d = 0; d < devices; ++d) {
        while (positions_[d].next < lists_[d].size()) {
          const Outcome outcome = step(d, lists_[d][positions_[d].next]);
          if (outcome.error != nullptr) return fault(d, outcome.error);
          if (outcome.blocked) break;
          ++positions_[d].next;
          moved = true;
        }
      }
    }
    for (int d = 0; d < devices; ++d) {
      if (positions_[d].next < lists_[d].size()) return fault(d, "waits for ever");
    }
    for (int d = 0; d < devices; ++d) {
      if (!positions_[d].requests.empty()) return fault(d, "a message was never waited for");
      if (const char* error = devices_[d].at_the_end(); error != nullptr) return fault(d, error);
    }
    // Every pass ran on some device; none ran twice, since every total had each micro-batch once.
    std::int64_t passes = 0;
    for (const SymbolicDevice& device : devices_) passes += device.passes();
    const Rule& rule = schedule_.rule();
    if (passes != (segment_.last - segment_.first) * rule.micro_batches() * rule.stages())
      return fault(0, "micro-batches are missing");
    return std::nullopt;
  }

 private:
  /// What became of the next action of a device.
  struct Outcome {
    const char* error = nullptr;
    bool blocked = false;
  };

  /// A started message until its wait.
  struct Started {
    Action action;
    bool complete = false;
    std::size_t ordinal = 0;   // of a collective in its group
    Statement statement = {};  // of a send, then of what it meets
  };

  /// A collective that some devices of its group have started.
  struct GroupCall {
    Action action;
    std::size_t started = 0;
    std::vector<int> told = {};  // stages whose norms its devices measured
  };

  /// Before all rounds.
  static constexpr Round none = {std::numeric_limits<std::int64_t>::min(), 0};

  struct Position {
    std::size_t next = 0;    // action
    Round waited = none;     // the last round of a message that was waited for
    Round exchanged = none;  // up to which rounds are started
    std::vector<Started> requests;
    std::vector<std::size_t> collectives;  // [group] started so far
  };

  [[nodiscard]] Fault fault(int d, const char* why) const {
    const std::size_t at = positions_[d].next;
    const std::string action = at < lists_[d].size()
                                   ? to_string(lists_[d][at])
                                   : fmt::format("end of the segment of steps {} .. {}",
                                                 segment_.first, segment_.last - 1);
    return {d, at, fmt::format("device {}, action {}: {}: {}", d, at, action, why)};
  }

  [[nodiscard]] static std::vector<Started>::iterator under_way(Position& position,
                                                                const Action& action) {
    return std::ranges::find_if(position.requests, [&](const Started& candidate) {
      return same_message(candidate.action, action);
    });
  }

  Outcome step(int d, const Action& action) {
    if (action.kind == ActionKind::exchange) return {exchange(d, action)};
    if (const char* error = devices_[d].execute(action); error != nullptr) return {error};
    Position& position = positions_[d];
    if (action.kind == ActionKind::wait) return wait(d, action);
    if (!starts_message(action)) return {};
    const bool joins = is_collective(action);
    if (const char* error = misplaced_round(position, action); error != nullptr) return {error};
    if (std::ssize(position.requests) == schedule_.buffers(d).requests)
      return {"starts more messages than the device has requests"};
    if (under_way(position, action) != position.requests.end())
      return {"starts what is under way already; a wait could not tell them apart"};
    position.requests.push_back({.action = action});
    if (joins) return {join(d)};
    if (action.kind == ActionKind::send)
      position.requests.back().statement = devices_[d].statement(action);
    return {match(d)};
  }

  /// Says nothing of its step: rounds belong to all that have messages in them.
  const char* exchange(int d, const Action& action) {
    if (const char* error = misnamed_field(schedule_, segment_, d, action); error != nullptr)
      return error;
    if (action.round <= positions_[d].exchanged) return "exchanges what is exchanged already";
    positions_[d].exchanged = action.round;
    return nullptr;
  }

  /// Why a message cannot be of its round where it starts, or null. From this, from the equality of
  /// rounds at both ends and from no wait before its round follows, by induction over rounds, that
  /// groups end which block until all of their peers have called: of the first round that does not
  /// end, every device has started its group, for whatever it waited for before is of earlier ones.
  [[nodiscard]] const char* misplaced_round(const Position& position, const Action& start) const {
    if (!schedule_.spec().rounds) return nullptr;
    if (!start.round.exists()) return "is of no round";
    if (start.round <= position.exchanged) return "is of a round that is exchanged already";
    if (start.round <= position.waited) return "is not behind the rounds that were waited for";
    return nullptr;
  }

  /// Enters the newest request of device d into the collectives of its group, which all devices
  /// must start in the same order.
  const char* join(int d) {
    Started& mine = positions_[d].requests.back();
    const auto group = static_cast<std::size_t>(mine.action.group);
    std::vector<std::size_t>& counts = positions_[d].collectives;
    counts.resize(collectives_.size());
    mine.ordinal = counts[group]++;
    std::vector<GroupCall>& all = collectives_[group];
    if (mine.ordinal == all.size()) all.push_back({.action = mine.action});
    GroupCall& met = all[mine.ordinal];
    ++met.started;
    const Action& a = mine.action;
    const Action& b = met.action;
    const bool same = a.kind == b.kind && a.payload == b.payload && a.stage == b.stage &&
                      a.piece == b.piece && a.step == b.step && a.micro_batch == b.micro_batch &&
                      a.version == b.version && a.peer == b.peer && a.bytes == b.bytes &&
                      a.round == b.round;
    if (!same) return "meets another collective in its group";
    return a.payload == Payload::norms ? tell_norms(d, met) : nullptr;
  }

  /// The devices of a group must update every stage once between them.
  const char* tell_norms(int d, GroupCall& call) {
    const std::vector<bool>& updates = schedule_.buffers(d).optimizer;
    for (int j = 0; j < std::ssize(updates); ++j) {
      if (updates[j]) call.told.push_back(j);
    }
    if (call.started < schedule_.groups()[call.action.group].size()) return nullptr;
    std::ranges::sort(call.told);
    std::vector<int> all(schedule_.rule().stages());
    std::iota(all.begin(), all.end(), 0);
    return call.told == all ? nullptr : "does not tell the norm of every stage once";
  }

  /// Completes the newest request of device d when its other end is waiting; messages between two
  /// devices about the same thing keep their order.
  const char* match(int d) {
    Started& mine = positions_[d].requests.back();
    const Action& a = mine.action;
    for (Started& other : positions_[a.peer].requests) {
      const Action& b = other.action;
      if (other.complete || b.peer != d || b.direction == a.direction || b.payload != a.payload ||
          b.stage != a.stage || b.piece != a.piece || b.direction == Direction::none)
        continue;
      mine.complete = other.complete = true;
      std::swap(mine.statement, other.statement);  // only the receiver looks at it
      const bool same = a.step == b.step && a.micro_batch == b.micro_batch &&
                        a.version == b.version && a.bytes == b.bytes && a.round == b.round;
      return same ? nullptr : "meets another message at its peer";
    }
    return nullptr;
  }

  Outcome wait(int d, const Action& action) {
    const auto request = under_way(positions_[d], action);
    if (request == positions_[d].requests.end()) return {"waits for what was never started"};
    Action started = wait_for(request->action);
    started.time = action.time;
    if (started != action) return {"is about another buffer, version or size than was started"};
    const bool complete = is_collective(action)
                              ? collectives_[action.group][request->ordinal].started ==
                                    schedule_.groups()[action.group].size()
                              : request->complete;
    if (!complete) return {nullptr, true};
    const Round round = request->action.round;
    if (round.exists() && round > positions_[d].exchanged) return {"waits before its round"};
    if (round.exists()) positions_[d].waited = std::max(positions_[d].waited, round);
    const char* error = devices_[d].finish(action, request->statement);
    positions_[d].requests.erase(request);
    return {error};
  }

  const Schedule& schedule_;
  Segment segment_;
  const std::vector<std::vector<Action>>& lists_;
  std::vector<SymbolicDevice> devices_;
  std::vector<Position> positions_;
  std::vector<std::vector<GroupCall>> collectives_;  // [group]
};

}  // namespace

std::optional<Fault> check_actions(const Schedule& schedule, const Segment& segment,
                                   const std::vector<std::vector<Action>>& lists) {
  return Execution(schedule, segment, lists).run();
}

std::optional<Fault> find_fault(const Schedule& schedule) {
  const Segment window = schedule.window();
  if (auto fault = check_actions(schedule, window, schedule.lists(window))) return fault;
  const Segment step{0, 1};
  return check_actions(schedule, step, schedule.lists(step));
}

void check_schedule(const Schedule& schedule) {
  if (const std::optional<Fault> fault = find_fault(schedule))
    fail(ExitCode::internal,
         "the schedule is faulty: {}; this is a bug in Carousel, please report it", fault->text);
}

}  // namespace carousel
