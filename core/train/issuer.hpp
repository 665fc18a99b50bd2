// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Hands the actions of one device to its queues, in the order of the schedule, and never waits for
// them: it stops where it would be too far ahead. What an action does is the executor's business.

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/engine/queue.hpp"
#include "core/plan/schedule.hpp"
#include "core/train/activity.hpp"
#include "core/train/executor.hpp"
#include "core/train/lane_order.hpp"
#include "core/train/recorder.hpp"
#include "core/train/reports.hpp"

namespace carousel {

/// What an issuer works with; all borrowed, and alive as long as it.
struct IssuerParts {
  int device = 0;
  const Schedule& schedule;
  Executor& executor;
  std::vector<Queue*> compute;  // its compute queues
  CommunicationQueue& communication;
  Reports& reports;
  Recorder& recorder;
  Activity& activity;
  std::function<void(std::int64_t, const StepSums&)> on_step;  // a step is complete
  std::int64_t first_step = 0;                                 // of this process
};

class Issuer {
 public:
  explicit Issuer(IssuerParts parts);

  /// Begins a segment of training steps, or a list of actions outside training, such as an
  /// evaluation; when what was begun before is done.
  void begin(const Segment& segment);
  void begin(std::span<const Action> actions);

  /// Hands over what it can: until nothing is left, a queue is full, or the next action is of a
  /// step that lies too far ahead of the device.
  void issue();
  /// Whether all is handed over.
  [[nodiscard]] bool is_done();
  /// Tells of the steps whose sums the device has learned since.
  void listen();
  /// When the device has done everything: reads what it has reported to the end.
  void end();

  /// The segment, which a step that is no longer finite or somebody's wish for a pause has
  /// shortened: all devices end after the same step.
  [[nodiscard]] const Segment& segment() const { return segment_; }
  /// The first step whose loss was not finite, or -1.
  [[nodiscard]] std::int64_t diverged_at() const { return diverged_at_; }
  /// The newest step of which an action is handed over.
  [[nodiscard]] std::int64_t newest_step() const { return begun_; }
  /// The part, from 0 to 1, of a list outside training that is executed.
  [[nodiscard]] double part_done() const {
    if (list_.empty()) return 1;
    return static_cast<double>(parts_.executor.executed()) / static_cast<double>(list_.size());
  }
  /// Messages and bytes sent in training since the construction.
  [[nodiscard]] const Traffic& sent() const { return sent_; }

 private:
  struct Pending {
    Action action;
    Request request = 0;
  };

  [[nodiscard]] Queue& queue() const { return *parts_.compute.front(); }
  [[nodiscard]] bool is_full() const;
  bool fetch();
  bool may_begin(std::int64_t step);
  void obey();
  void collect(std::int64_t last);
  void hand_over(const Action& action);
  void note_update(const Action& action);
  void compute(const Action& action);
  void start(const Action& action);
  void name_parts(const Action& action, Collective& collective) const;
  void wait(const Action& action);

  IssuerParts parts_;
  LaneOrder lane_order_;
  /// [member of the group] what it has of a chunk: numbers of gradients, bytes of parameters.
  struct Chunk {
    std::vector<int> gradients, parameters;
  };
  std::map<std::pair<int, int>, Chunk> chunks_;  // [stage, first piece]
  std::vector<Pending> pending_;  // started and not yet waited for, as far as is handed over

  bool training_ = false;
  Segment segment_;
  std::int64_t period_ = 0;
  std::span<const Action> list_;
  std::size_t next_ = 0;
  std::optional<Action> action_;             // fetched
  std::int64_t begun_;                       // newest step of which an action is handed over
  std::array<Event, host_lead> beginnings_;  // of step t in t % host_lead

  std::vector<Receipt> updates_;  // handed over, whose digests are not read yet
  std::int64_t told_;             // newest step whose sums were told
  std::int64_t diverged_at_ = -1;
  Traffic sent_;
};

}  // namespace carousel
