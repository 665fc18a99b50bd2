// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A schedule: for every device the ordered actions of training, as data. This is the only place
// that knows rules and placements; it executes nothing and allocates no device memory.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/plan/action.hpp"
#include "core/plan/rule.hpp"

namespace carousel {

/// Training steps first .. last - 1, executed without interruption. All devices enter and leave it
/// with complete copies of theta_first, theta_{first-1} and theta_last, theta_{last-1}.
struct Segment {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// The segment of a run that begins with `step`. Segments end with epochs: records reach the disk
/// and evaluations find complete parameters.
[[nodiscard]] Segment segment_at(std::int64_t step, std::int64_t steps_per_epoch,
                                 std::int64_t total_steps);

/// How many buffers of each kind the actions of one device name.
struct BufferCounts {
  int inputs = 0;                           // images and labels of a micro-batch
  std::vector<int> frames;                  // [S] saved activations, used round robin
  std::vector<int> boundaries;              // [S] gradients of a stage's output; none for the last
  std::vector<std::vector<int>> gradients;  // [buffer] stages whose gradients it holds in turn
  int parameter_copies = 1;                 // version v lives in copy v mod parameter_copies
  std::vector<bool> optimizer;              // [S] whether this device updates the stage
  int requests = 0;                         // messages started and not yet waited for
};

/// What a schedule is a function of, beside the rule.
struct ScheduleSpec {
  ParallelConfig parallel;
  std::vector<std::int64_t> message_bytes;  // [S] one stage's gradient or parameters with its rider
};

/// The actions of one device repeat with the training step. They are kept once, for a period of
/// `period_time` time steps: an action's `step` and `version` there are relative to the period.
class Schedule {
 public:
  explicit Schedule(const ScheduleSpec& spec);

  [[nodiscard]] const Rule& rule() const { return rule_; }
  [[nodiscard]] const ParallelConfig& parallel() const { return spec_.parallel; }
  [[nodiscard]] int devices() const { return static_cast<int>(periods_.size()); }
  [[nodiscard]] std::int64_t period_time() const { return period_time_; }
  [[nodiscard]] std::int64_t message_bytes(int stage) const { return spec_.message_bytes[stage]; }
  [[nodiscard]] const BufferCounts& buffers(int device) const { return buffers_[device]; }
  /// The device that completes theta of a stage first and, for cyclic rules, alone holds its
  /// optimizer state: the first micro-batch that v2 lets read fresh parameters (N-1-j for N = S).
  [[nodiscard]] int owner(int stage) const { return owner_[stage]; }
  /// Micro-batches that a device runs per training step.
  [[nodiscard]] int local_micro_batches(int device) const { return local_[device]; }
  /// The buffer, out of `count` used round robin, of a micro-batch `steps` after a segment began.
  [[nodiscard]] int round_robin(int device, std::int64_t steps, int micro_batch, int count) const;

  /// The actions of one period, steps and versions relative, buffers of activations as ordinals.
  [[nodiscard]] std::span<const Action> period(int device) const { return periods_[device]; }
  /// Periods after the last step of a segment until all its actions are done.
  [[nodiscard]] std::int64_t trailing_periods() const { return trailing_periods_; }
  /// One action of `period(device)` made absolute. Belongs to the segment only when the result's
  /// step does, which the caller checks: a stop request may have shortened it meanwhile.
  [[nodiscard]] Action instantiate(int device, const Action& action, std::int64_t period,
                                   std::int64_t first_step) const;
  /// All actions of one device in one segment, in order.
  [[nodiscard]] std::vector<Action> actions(int device, const Segment& segment) const;

 private:
  void count_buffers();

  ScheduleSpec spec_;
  Rule rule_;
  std::int64_t period_time_ = 0;
  std::int64_t trailing_periods_ = 0;
  std::vector<int> owner_;
  std::vector<int> local_;
  std::vector<std::vector<Action>> periods_;
  std::vector<BufferCounts> buffers_;
};

/// Batches of an evaluation are dealt to the devices in turn: how many a device has, and where the
/// results of a batch lie on device 0, which collects them sender by sender.
[[nodiscard]] std::int64_t evaluation_share(const Schedule& schedule, std::int64_t batches,
                                            int device);
[[nodiscard]] std::int64_t evaluation_position(const Schedule& schedule, std::int64_t batches,
                                               std::int64_t batch);

/// Actions of an evaluation with theta_version, [device]; `batches` counts micro-batches of the
/// test set. Results travel to device 0.
[[nodiscard]] std::vector<std::vector<Action>> evaluation_actions(const Schedule& schedule,
                                                                  std::int64_t batches,
                                                                  std::int64_t version,
                                                                  std::int64_t bytes_per_batch);

/// Actions that bring the optimizer state of all stages to device 0 and save it there.
[[nodiscard]] std::vector<std::vector<Action>> collection_actions(
    const Schedule& schedule, const std::vector<std::int64_t>& state_bytes, std::int64_t step);

/// Messages and bytes that a device sends per steady training step.
struct Traffic {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
};
[[nodiscard]] Traffic traffic(const Schedule& schedule, int device);

}  // namespace carousel
