// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Trains a model: divides the run into segments, drives the devices of this process through each,
// evaluates between them, and shows what a checkpoint holds. What is told about it goes to an
// observer; files are not its business.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/data/source.hpp"
#include "core/engine/layer.hpp"
#include "core/engine/transport.hpp"
#include "core/plan/memory_plan.hpp"
#include "core/plan/partition.hpp"
#include "core/train/config.hpp"
#include "core/train/device.hpp"
#include "core/train/records.hpp"
#include "core/train/speed.hpp"

namespace carousel {

/// Everything that was decided before training starts; borrowed, and alive as long as the trainer.
struct TrainerSpec {
  const Model& model;
  const Partition& partition;
  const Schedule& schedule;
  const MemoryPlan& memory;
  const Source& source;
  const std::vector<double>& mean;  // of each channel of its inputs, of values in [0, 1]
  const std::vector<double>& std;   // likewise
  const TrainConfig& train;
  const CheckpointConfig& checkpoint;
  const ProfileConfig& profile;
  std::uint64_t seed = 1;
  int workers = 1;           // threads of a device that read samples
  std::vector<int> devices;  // of the plan, in this process
  Beginning beginning = {};
  /// Whether this process wants the segment to end soon; all devices then end it after the same
  /// step. Asked in every backward.
  std::function<bool()> wants_pause = [] { return false; };
  LayerFactory layers;
  /// What layers of vendors share, for each compute queue; none where there are no such.
  std::function<std::shared_ptr<VendorHandles>(const ExecutionSpace&)> vendor = {};
  /// Which of a device's compute queues is asked first for the next task, of so many; none: the one
  /// that was run last. For tests.
  std::function<std::size_t(std::size_t)> next_lane = {};
  /// How a device reaches the others: by a transport, whose calls the host makes, or by a queue
  /// that the device itself works off.
  std::function<std::unique_ptr<Transport>(int device)> transport;
  std::function<std::unique_ptr<CommunicationQueue>(int device)> communication = {};
  Clock seconds;
  Helping helping = Helping::helped;
  /// Whether devices compute everything once before anything begins, so that nothing comes into
  /// being in a step.
  bool rehearses = false;
  /// Whether evaluations keep what each sample is taken for; on one device.
  bool keeps_chosen = false;
};

/// Learns what happens. Steps and evaluations are told by the process that holds device 0 only; all
/// calls come from the training thread: those of updates inside an action, others between two.
class TrainingObserver {
 public:
  TrainingObserver() = default;
  TrainingObserver(const TrainingObserver&) = delete;
  TrainingObserver& operator=(const TrainingObserver&) = delete;
  virtual ~TrainingObserver() = default;

  virtual void on_step(const StepRecord& step) = 0;
  /// theta_{step+1} of one stage in device memory, `size` numbers, by its owner. It may have yet to
  /// be computed: what `queue` is told to do with it comes after that.
  virtual void on_update(const ExecutionSpace& queue, int device, std::int64_t step, int stage,
                         const real* theta, std::int64_t size) = 0;
  /// Before, during and after an evaluation; each time device 0 has got on, so it has to be quick.
  virtual void on_evaluating(const EvaluationProgress& progress) = 0;
  virtual void on_evaluation(const EvaluationRecord& evaluation) = 0;
  /// Every device of this process after every segment; the records are those of the segment.
  virtual void on_segment_end(int device, const Recorder& recorder) = 0;
};

struct TrainingResult {
  std::int64_t steps = 0;         // updates made, in segments that are over
  std::int64_t diverged_at = -1;  // first step whose loss was not finite
};

class Trainer {
 public:
  Trainer(const ExecutionSpace& exec, TrainerSpec spec, TrainingObserver& observer);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer();

  /// Trains the next segment, or as much of it as there is before a pause that somebody wants.
  /// False when nothing is left to be trained: all steps are done, or the loss is no longer finite.
  bool advance();
  /// Evaluates where that is due behind the segment that is over; false where it is not. By every
  /// process of the run.
  bool evaluate_when_due();
  /// Advances to the end, and evaluates.
  TrainingResult run();
  /// Shows what was learned of the stages that devices of this process own, stage by stage; each
  /// belongs to one device of the run. Between segments; sends and waits for nothing.
  void show_state(const StateVisitor& visit) const;
  /// What was measured on a device of this process.
  [[nodiscard]] MeasuredRecord measured(int device) const;
  /// Layers of stages that devices of this process own that have a slow gradient of weights, once
  /// they have computed it.
  [[nodiscard]] std::uint64_t slow_gradients() const;
  /// A device of this process.
  [[nodiscard]] Device& device(int index) const;

  /// Steps of the segments that are over.
  [[nodiscard]] std::int64_t steps() const { return result_.steps; }
  [[nodiscard]] const TrainingResult& result() const { return result_; }
  [[nodiscard]] const Agenda& agenda() const { return agenda_; }
  /// How its steps divide epochs.
  [[nodiscard]] const TrainingOrder& order() const { return order_; }
  /// Evaluates theta_version on /test; the record counts on the process of device 0 only.
  EvaluationRecord evaluate(std::int64_t version);

  /// Of the last evaluation, the class that each sample of /test was taken for, in file order.
  [[nodiscard]] std::vector<int> chosen() const { return devices_.front()->chosen(); }

 private:
  void step_done(std::int64_t step, const StepSums& sums);
  void run_segment(const Segment& segment);
  void tell();
  void tell_evaluating(std::int64_t version, double part);
  /// `evaluated` is the version whose evaluation this is; -1: none.
  void run_lists(const std::vector<std::vector<Action>>& lists, std::int64_t evaluated = -1);
  void drive(std::int64_t evaluated = -1);
  template <class Visit>
  void for_each_owned(const Visit& visit) const;

  ExecutionSpace exec_;
  TrainerSpec spec_;
  TrainingObserver& observer_;
  TrainingOrder order_;
  Agenda agenda_;
  TrainingResult result_;
  Speed speed_;
  double first_step_seconds_ = -1;
  std::vector<StepRecord> completed_;  // not yet told
  HostCommunication communication_;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace carousel
