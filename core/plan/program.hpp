// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Collects the actions of one training step on one device at their time steps and folds them into
// the repeating period of a schedule. It knows order in time, not what the actions are for.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/plan/action.hpp"

namespace carousel {

/// Order of actions of one device within a time step.
enum class Phase : std::uint8_t {
  receive_parameters,  // wait for parameters of this time step, hand them on
  before_update,       // wait until buffers that an update writes are sent
  update,              // wait for totals, update, hand on
  pace,                // wait for the token
  before_post,         // wait until buffers are sent
  post,
  compute,
  token,
  reduce,  // wait for the partial sum, add, send on
  release,
  late_wait,  // after the last use of a buffer in this time step
  late_post,
};

class PeriodBuilder {
 public:
  explicit PeriodBuilder(std::int64_t period_time) : period_time_(period_time) {}

  /// Adds an action of training step 0 (whose version is relative to that step) at `time`, which
  /// may lie in later periods. Actions of equal time and phase keep the order of insertion.
  void add(std::int64_t time, Phase phase, Action action) {
    action.time = time;
    entries_.push_back({phase, action});
  }

  /// The period's actions in order; step and version are relative to the period's own step, older
  /// steps first where time and phase are equal.
  [[nodiscard]] std::vector<Action> fold() {
    for (Entry& entry : entries_) {
      const std::int64_t later = entry.action.time / period_time_;
      entry.action.time -= later * period_time_;
      entry.action.step -= later;
      entry.action.version -= later;
    }
    std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      if (a.action.time != b.action.time) return a.action.time < b.action.time;
      if (a.phase != b.phase) return a.phase < b.phase;
      return a.action.step < b.action.step;
    });
    std::vector<Action> actions;
    actions.reserve(entries_.size());
    for (const Entry& entry : entries_) actions.push_back(entry.action);
    return actions;
  }

 private:
  struct Entry {
    Phase phase;
    Action action;
  };
  std::int64_t period_time_;
  std::vector<Entry> entries_;
};

}  // namespace carousel
