// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/staging.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/base/align.hpp"
#include "core/base/check.hpp"
#include "core/plan/evaluation.hpp"

namespace carousel {
namespace {

/// Messages of a device under way, and where they lie, while its list is walked.
class Walk {
 public:
  Walk(const Schedule& schedule, int device)
      : places_(schedule.buffers(device).requests, stages_by_size(schedule)) {}

  void pass(const Action& action) {
    if (starts_message(action)) {
      under_way_.emplace_back(wait_for(action), places_.take(action.bytes));
    } else if (action.kind == ActionKind::wait) {
      const auto found = std::ranges::find_if(
          under_way_, [&](const auto& started) { return same_message(started.first, action); });
      CAROUSEL_CHECK(found != under_way_.end(), "nothing was started for: {}", to_string(action));
      places_.give_back(found->second);
      under_way_.erase(found);
    }
  }

  /// What decides all that comes, as seen from a period of a schedule.
  [[nodiscard]] std::vector<std::pair<Action, std::int64_t>> state(std::int64_t period) const {
    std::vector<std::pair<Action, std::int64_t>> result = under_way_;
    for (auto& [action, offset] : result) {
      action.step -= period;
      if (names_version(action)) action.version -= period;
      action.time = 0;
      action.peer = action.buffer = -1;  // taken in turn
    }
    return result;
  }
  [[nodiscard]] std::int64_t size() const { return places_.size(); }

 private:
  StagingPlaces places_;
  std::vector<std::pair<Action, std::int64_t>> under_way_;  // its wait, where it lies
};

/// Passes the actions of one period.
void pass_period(const Schedule& schedule, int device, std::int64_t period, const Segment& segment,
                 Walk& walk) {
  for (const ProgramAction& what : schedule.program(device).actions) {
    if (const std::optional<Action> action = schedule.instantiate(device, what, period, segment))
      walk.pass(*action);
  }
}

/// Periods of a segment without end that begins with step `first` after which messages lie as they
/// lay before: from there on everything repeats.
std::int64_t periods_until_repeated(const Schedule& schedule, int device, std::int64_t first) {
  constexpr std::int64_t most = 1000;
  const std::int64_t turns = schedule.program(device).team;  // periods between two of one turn
  const Segment segment{first, first + most * turns + 2 * schedule.reach()};
  Walk walk(schedule, device);
  std::vector<std::vector<std::pair<Action, std::int64_t>>> states;  // after periods
  for (std::int64_t p = schedule.first_period(segment); p < segment.last - schedule.reach(); ++p) {
    pass_period(schedule, device, p, segment, walk);
    states.push_back(walk.state(p));
    const std::int64_t passed = std::ssize(states);
    if (passed <= schedule.reach()) continue;  // the segment has just begun
    for (std::int64_t k = passed - 1 - turns; k >= schedule.reach(); k -= turns) {
      if (states[k] == states.back()) return passed;
    }
  }
  fail(ExitCode::internal, "messages of device {} never lie as they did before", device);
}

/// As many places of every size as there ever are messages of it.
std::int64_t bytes_by_size(const Schedule& schedule, int device) {
  struct Count {
    std::int64_t now = 0;
    std::int64_t most = 0;
  };
  std::map<std::int64_t, Count> sizes;
  schedule.for_each(device, schedule.window(), [&](const Action& action) {
    Count& count = sizes[align_up(action.bytes)];
    if (starts_message(action)) count.most = std::max(count.most, ++count.now);
    if (action.kind == ActionKind::wait) --count.now;
  });
  std::int64_t bytes = 0;
  for (const auto& [size, count] : sizes) bytes += size * count.most;
  return bytes;
}

/// Of segments that begin with any turn of the device, and that end at any state of messages.
std::int64_t training_bytes(const Schedule& schedule, int device) {
  if (stages_by_size(schedule)) return bytes_by_size(schedule, device);
  std::int64_t bytes = 0;
  for (std::int64_t first = 0; first < schedule.program(device).team; ++first) {
    const std::int64_t periods = periods_until_repeated(schedule, device, first);
    for (std::int64_t steps = 1; steps <= periods + schedule.reach(); ++steps) {
      const Segment segment{first, first + steps};
      Walk walk(schedule, device);
      for (std::int64_t p = schedule.first_period(segment); p < schedule.end_period(segment); ++p)
        pass_period(schedule, device, p, segment, walk);
      bytes = std::max(bytes, walk.size());
    }
  }
  return bytes;
}

}  // namespace

std::int64_t StagingPlaces::take(std::int64_t bytes) {
  if (bytes == 0) return -1;
  const std::int64_t needed = align_up(bytes);
  if (by_size_) return take_of_size(needed);
  std::int64_t begin = 0;
  auto next = taken_.begin();
  while (next != taken_.end() && next->begin - begin < needed) begin = (next++)->end;
  taken_.insert(next, {begin, begin + needed});
  size_ = std::max(size_, begin + needed);
  return begin;
}

void StagingPlaces::give_back(std::int64_t offset) {
  if (offset < 0) return;
  const auto place = std::ranges::find(taken_, offset, &Place::begin);
  CAROUSEL_CHECK(place != taken_.end(), "no message lies at {}", offset);
  if (by_size_) free_.push_back(*place);
  taken_.erase(place);
  if (!by_size_ || !taken_.empty()) return;
  free_.clear();
  end_ = 0;
}

std::int64_t StagingPlaces::take_of_size(std::int64_t needed) {
  const auto found =
      std::ranges::find(free_, needed, [](const Place& place) { return place.end - place.begin; });
  if (found != free_.end()) {
    taken_.push_back(*found);
    free_.erase(found);
  } else {
    taken_.push_back({end_, end_ + needed});
    end_ += needed;
    size_ = std::max(size_, end_);
  }
  return taken_.back().begin;
}

bool stages_by_size(const Schedule& schedule) {
  return !schedule.spec().pieces.empty();
}

std::vector<std::int64_t> staging_bytes(const Schedule& schedule, std::int64_t evaluation_batches,
                                        std::int64_t bytes_per_batch) {
  const auto closing = closing_actions(schedule, 1);
  const auto evaluation = evaluation_actions(schedule, evaluation_batches, 1, bytes_per_batch);
  std::vector<std::int64_t> result;
  for (int d = 0; d < schedule.devices(); ++d) {
    result.push_back(training_bytes(schedule, d));
    for (const auto* lists : {&closing, &evaluation}) {
      Walk walk(schedule, d);
      for (const Action& action : (*lists)[d]) walk.pass(action);
      result.back() = std::max(result.back(), walk.size());
    }
  }
  return result;
}

}  // namespace carousel
