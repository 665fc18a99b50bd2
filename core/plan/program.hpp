// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a device does over and over, as placements write it down: the actions of one training step,
// folded into a period that repeats. Plain data and a builder; what actions are for it knows not.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/plan/action.hpp"

namespace carousel {

/// Where a version of parameters lives among the copies of a stage; version -1 in the last.
[[nodiscard]] constexpr int copy_of(std::int64_t version, int copies) {
  return static_cast<int>((version % copies + copies) % copies);
}

/// A buffer for gradients of one stage after the other.
struct GradientBuffer {
  std::vector<int> stages;
  int shard = -1;  // it has one piece of that shard at a time; -1: all of a stage
};

/// What passes of a device read of a stage, with prediction: theta_t, what is read in place of
/// theta_{t-1}, or some one and some the other. Who updates a stage makes the other, too.
enum class ParametersRead : std::uint8_t { theta, predicted, both };

/// How many buffers of each kind the actions of one device name.
struct BufferCounts {
  int first_stage = 0;  // the device runs stages first_stage .. last_stage
  int last_stage = 0;
  int inputs = 0;               // inputs and targets of a micro-batch
  std::vector<int> frames;      // [S] saved activations, used round robin
  std::vector<int> boundaries;  // [S] gradients of a stage's output; none for the last
  std::vector<GradientBuffer> gradients;
  std::vector<int> owned;                  // stages whose parameters stay on the device,
  std::vector<int> kept = {};              // or of which the pieces of its shard alone do
  int parameter_copies = 1;                // of those; see copy_of
  std::vector<ParametersRead> reads = {};  // [S] of those, of which `both` has so many copies of
                                           // each; without prediction none
  int travelling = 0;           // buffers for parameters of any stage that pass by, round robin
  std::vector<bool> optimizer;  // [S] whether this device updates the stage,
  int shard = -1;               // or only pieces of that shard; -1: all of it
  int requests = 0;             // messages started and not yet waited for

  [[nodiscard]] ParametersRead reads_of(int stage) const {
    return reads.empty() ? ParametersRead::theta : reads[stage];
  }
  [[nodiscard]] bool owns(int stage) const {
    return std::ranges::find(owned, stage) != owned.end();
  }
  /// Whether a piece of a stage stays here that otherwise passes by.
  [[nodiscard]] bool keeps(int stage, int piece, int shards) const {
    return piece >= 0 && piece % shards == shard && std::ranges::find(kept, stage) != kept.end();
  }
  /// Whether the input of the first stage comes from another device, into a landing beside every
  /// frame of that stage.
  [[nodiscard]] bool lands() const { return first_stage > 0; }
};

/// Which device of a team an action is about. A team takes the micro-batches of its stage in turn:
/// micro-batch number m ever is for its device m mod size. Turn k of a training step is the k-th
/// micro-batch of that step, and may lie before or behind it.
struct Turns {
  int here = 0;
  int peer = 0;
};

/// An action of a period. Its step and version are relative to the period's own step, its peer is a
/// program, its group that of the first device of the team (the others have the following ones),
/// and buffers that are taken in turn are left open.
struct ProgramAction {
  Action action;
  Turns turns;
};

/// The period of a team of devices, which is a single device for most placements.
struct Program {
  int first_device = 0;
  int team = 1;
  std::vector<ProgramAction> actions = {};
  BufferCounts buffers = {};
};

/// Order of actions of one device within a time step.
enum class Phase : std::uint8_t {
  receive_parameters,  // wait for parameters of this time step, hand them on
  before_update,       // wait until buffers that an update writes are sent
  update,              // wait for totals, update, hand on
  pace,                // wait for the token
  before_post,         // wait until buffers are sent
  post,
  arrive,  // wait for what the passes of this time step read
  compute,
  leave,   // send what they made
  reduce,  // wait for the partial sum, add, send on
  release,
  late_wait,  // after the last use of a buffer in this time step
  late_post,
};

/// Collects the actions of one training step at their time steps and folds them into a period.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::int64_t period_time) : period_time_(period_time) {}

  /// Adds an action of training step 0 (whose version is relative to that step) at `time`, which
  /// may lie in later periods, or before the step begins. Actions of equal time and phase keep the
  /// order of insertion.
  void add(std::int64_t time, Phase phase, Action action, Turns turns = {}) {
    action.time = time;
    entries_.push_back({phase, {action, turns}});
  }

  /// The period's actions in order; step and version are relative to the period's own step, older
  /// steps first where time and phase are equal.
  [[nodiscard]] std::vector<ProgramAction> fold() {
    for (Entry& entry : entries_) {
      Action& action = entry.what.action;
      const std::int64_t later =
          (action.time < 0 ? action.time - period_time_ + 1 : action.time) / period_time_;
      action.time -= later * period_time_;
      action.step -= later;
      action.version -= later;
    }
    std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      if (a.what.action.time != b.what.action.time) return a.what.action.time < b.what.action.time;
      if (a.phase != b.phase) return a.phase < b.phase;
      return a.what.action.step < b.what.action.step;
    });
    std::vector<ProgramAction> actions;
    actions.reserve(entries_.size());
    for (const Entry& entry : entries_) actions.push_back(entry.what);
    return actions;
  }

 private:
  struct Entry {
    Phase phase;
    ProgramAction what;
  };
  std::int64_t period_time_;
  std::vector<Entry> entries_;
};

}  // namespace carousel
