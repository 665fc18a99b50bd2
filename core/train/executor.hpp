// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Executes the actions of one device in the turn of its compute queues, one small function per
// kind. It makes no decision of its own and waits for nobody: rules and placements are the
// schedule's, order is the queues', bytes are the transport's.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/data/prefetcher.hpp"
#include "core/engine/device_clock.hpp"
#include "core/engine/launch_timeline.hpp"
#include "core/engine/queue.hpp"
#include "core/plan/schedule.hpp"
#include "core/train/activity.hpp"
#include "core/train/config.hpp"
#include "core/train/device_memory.hpp"
#include "core/train/lane.hpp"
#include "core/train/recorder.hpp"
#include "core/train/reports.hpp"

namespace carousel {

/// What an executor works with; all borrowed, and alive as long as it.
struct ExecutorParts {
  int device = 0;
  const Schedule& schedule;
  DeviceMemory& memory;
  std::vector<std::unique_ptr<Lane>>& lanes;
  CommunicationQueue& communication;
  Prefetcher& prefetcher;
  Reports& reports;
  Recorder& recorder;
  Activity& activity;
  const OptimizerConfig& optimizer;
  std::function<double(std::int64_t)> learning_rate;  // of an update index
  /// Its queue, step, stage and theta_{step+1}.
  std::function<void(const ExecutionSpace&, std::int64_t, int, const real*)> on_update;
  std::function<bool()> wants_pause;  // asked in every backward
  Clock seconds;
  int* chosen = nullptr;  // [test samples], what an evaluation by one device takes them for
  int micro_batch_size = 1;
  std::uint64_t seed = 0;
};

class Executor {
 public:
  explicit Executor(ExecutorParts parts);

  /// Begins a segment of training steps, or, without one, a list outside of training.
  void begin(std::optional<std::int64_t> first_step);

  /// Computes an action before anything begins, with whatever lies in memory, and tells nobody:
  /// what comes into being when it is first needed is there then. `first_step` as in begin();
  /// without one, it is an evaluation's, of so many samples.
  void rehearse(const Action& action, int lane, std::optional<std::int64_t> first_step,
                int samples);

  /// When it is handed over, in the order of the schedule: counts what is in use from it on, and
  /// makes its row, in profiled steps.
  [[nodiscard]] ActionRecord* note(const Action& action);

  // For tasks of compute queues, which may launch but not wait, one at a time, with that row:
  /// Executes an action that is not about a message.
  void execute(const Action& action, ActionRecord* row, int lane = 0);
  /// What comes before and after the start of a message.
  void prepare(const Action& start, ActionRecord* row);
  void end();
  /// What comes before and after a wait.
  void turn_to(const Action& action, ActionRecord* row, int lane = 0);
  void arrive(const Action& wait, Request request);

  /// What a message carries, or where it is put.
  [[nodiscard]] std::byte* payload(const Action& action) const;
  /// What a reduce_scatter sums, of its whole chunk.
  [[nodiscard]] real* summed(const Action& action) const;

  /// Actions executed since begin().
  [[nodiscard]] std::int64_t executed() const { return executed_; }
  /// Seconds that loads waited for samples since the construction.
  [[nodiscard]] double data_wait() const { return data_wait_; }

 private:
  void perform(const Action& action);
  void load(const Action& action);
  void copy_piece(const Action& action);
  void give_batches_back();
  void show(const Batch& batch, int input);
  void forward(const Action& action);
  void backward(const Action& action);
  void accumulate(const Action& action);
  void measure(const Action& action);
  void find_stage_norm(int stage);
  [[nodiscard]] double* block_sums(const Action& action) const;
  [[nodiscard]] const real* clip_factor(const Action& action);
  [[nodiscard]] int first_of(const Action& action) const;
  [[nodiscard]] real* gradient(int buffer, const Action& action) const;
  [[nodiscard]] std::byte* piece(const Action& action, std::int64_t version) const;
  [[nodiscard]] real* full_parameters(const Action& action, std::int64_t version) const;
  void update(const Action& action);
  void store(const Action& action);
  void update_riders(const Action& action, const real* sums, std::uint64_t* digest);
  [[nodiscard]] std::byte* rider_of_stage(const Action& action) const;
  void leave_own_norms();
  void look_at(const Action& arrived);

  [[nodiscard]] StageArguments arguments(const Action& pass);
  /// Where to launch a kernel that reads and writes so many numbers.
  [[nodiscard]] const ExecutionSpace& for_numbers(std::int64_t count) const {
    return lane_->workers.of({.bytes = static_cast<double>(count) * sizeof(real)});
  }
  /// Makes a mean of a sum over micro-batches.
  [[nodiscard]] real gradient_scale() const {
    return static_cast<real>(1.0 / parts_.schedule.rule().micro_batches());
  }
  [[nodiscard]] const StageMemory& stage(int index) const {
    return lane_->stages[index - counts_.first_stage].memory();
  }

  ExecutorParts parts_;
  Lane* lane_;  // of the task in hand
  DeviceClock clock_;
  const BufferCounts& counts_;
  std::int64_t states_;               // of the optimizer, per parameter
  PassBuffers buffers_;               // of the pass in hand
  std::vector<std::byte*> frames_;    // [S] of its micro-batch
  std::vector<std::int64_t> epochs_;  // [input] of the micro-batch in it
  // Names for tools: [stage] of all of it, then of each of its pieces.
  std::map<ActionKind, std::vector<std::vector<std::string>>> regions_;

  std::optional<std::int64_t> first_step_;  // of the segment; none outside training
  ActionRecord* record_ = nullptr;          // of the action in hand, of profiled steps
  std::int64_t executed_ = 0;
  LaunchTimeline loads_;         // batches copied since the construction
  std::int64_t given_back_ = 0;  // of those
  int samples_ = 0;              // of the batch in hand, outside training
  bool rehearses_ = false;
  double data_wait_ = 0;
};

}  // namespace carousel
