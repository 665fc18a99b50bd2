// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Executes the actions of one device, one small function per kind, in the order of the schedule.
// It makes no decision of its own: rules and placements are the schedule's, bytes the transport's.

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/data/prefetcher.hpp"
#include "core/engine/transport.hpp"
#include "core/plan/schedule.hpp"
#include "core/train/activity.hpp"
#include "core/train/config.hpp"
#include "core/train/device_memory.hpp"
#include "core/train/recorder.hpp"
#include "core/train/stage.hpp"

namespace carousel {

/// Sums over the micro-batches of one step, as they ride with gradients and parameters.
struct StepSums {
  double loss = 0;
  double correct = 0;
  double non_finite = 0;
  double pause = 0;  // not 0: somebody wants one
};

/// What an executor works with; all borrowed, and alive as long as it.
struct ExecutorParts {
  int device = 0;
  const Schedule& schedule;
  DeviceMemory& memory;
  std::vector<Stage>& stages;  // those of the device
  Transport& transport;
  Prefetcher& prefetcher;
  Recorder& recorder;
  Activity& activity;
  const OptimizerConfig& optimizer;
  std::function<double(std::int64_t)> learning_rate;              // of an update index
  std::function<void(std::int64_t, const StepSums&)> on_step;     // a step is complete
  std::function<void(std::int64_t, int, const real*)> on_update;  // step, stage, theta_{step+1}
  std::function<bool()> wants_pause;                              // asked in every backward
  Clock seconds;
  int* chosen = nullptr;  // [test samples], what an evaluation by one device takes them for
  int micro_batch_size = 1;
  std::uint64_t seed = 0;
  std::int64_t first_step = 0;  // of this process
};

class Executor {
 public:
  Executor(const ExecutionSpace& exec, ExecutorParts parts);

  /// Begins a segment of training steps.
  void begin(const Segment& segment);
  /// Begins a list of actions outside training, such as an evaluation.
  void begin(std::span<const Action> actions);

  enum class State : std::uint8_t { blocked, moved, done };
  /// Executes actions until one has to wait for a message (`moved` when any was executed before),
  /// one time step is over, so that devices of one process take turns in step, or all are done.
  State advance();

  /// The segment, which a step that is no longer finite or somebody's wish for a pause has
  /// shortened: all devices learn of it in time to end after the same step.
  [[nodiscard]] const Segment& segment() const { return segment_; }
  /// The first step whose loss was not finite, or -1.
  [[nodiscard]] std::int64_t diverged_at() const { return diverged_at_; }
  /// The part, from 0 to 1, of a list outside training that is executed.
  [[nodiscard]] double part_done() const {
    if (list_.empty()) return 1;
    return static_cast<double>(next_ - (fetched_ ? 1 : 0)) / static_cast<double>(list_.size());
  }
  /// Seconds that loads waited for samples since the construction.
  [[nodiscard]] double data_wait() const { return data_wait_; }
  /// Messages and bytes sent in training since the construction.
  [[nodiscard]] const Traffic& sent() const { return sent_; }

 private:
  struct Pending {
    Action action;
    Request request = 0;
    double posted = 0;
  };

  bool fetch();
  bool execute(const Action& action);
  void record(const Action& action, double begin);
  void load(const Action& action);
  void show(const Batch& batch, int input);
  void forward(const Action& action);
  void backward(const Action& action);
  void accumulate(const Action& action);
  void measure(int stage, const real* gradient_sum);
  [[nodiscard]] const real* clip_factor(int stage, const real* gradient_sum);
  void update(const Action& action);
  void leave_own_norms();
  void start_message(const Action& action);
  bool wait(const Action& action);
  void arrive(const Action& action);
  void learn(std::int64_t step, const real* rider);
  void diverge_at(std::int64_t step);
  void pause_at(std::int64_t step);

  [[nodiscard]] StageArguments arguments(const Action& pass);
  [[nodiscard]] std::byte* payload(const Action& action) const;
  /// Makes a mean of a sum over micro-batches.
  [[nodiscard]] real gradient_scale() const {
    return static_cast<real>(1.0 / parts_.schedule.rule().micro_batches());
  }
  [[nodiscard]] const StageMemory& stage(int index) const {
    return parts_.stages[index - counts_.first_stage].memory();
  }

  ExecutionSpace exec_;
  ExecutorParts parts_;
  const BufferCounts& counts_;
  PassBuffers buffers_;               // of the pass in hand
  std::vector<std::byte*> frames_;    // [S] of its micro-batch
  std::vector<std::int64_t> epochs_;  // [input] of the micro-batch in it
  Kokkos::View<std::uint64_t*, MemorySpace> digest_;
  std::map<ActionKind, std::vector<std::string>> regions_;  // [stage] names for tools
  std::vector<Pending> pending_;

  bool training_ = false;
  Segment segment_;
  std::int64_t period_ = 0;
  std::span<const Action> list_;
  std::size_t next_ = 0;
  Action action_;
  bool fetched_ = false;
  double blocked_since_ = -1;
  int samples_ = 0;          // of the batch in hand, outside training
  std::int64_t known_step_;  // the newest whose sums are known here
  std::int64_t diverged_at_ = -1;
  std::int64_t paused_at_ = -1;  // when somebody wanted it, in this segment
  double data_wait_ = 0;
  Traffic sent_;
};

}  // namespace carousel
