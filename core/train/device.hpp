// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One device of the plan as it lives in a process: its memory, kernels, data, queues, executor and
// issuer, put together once.

#include <memory>
#include <vector>

#include "core/base/copy.hpp"
#include "core/train/executor.hpp"
#include "core/train/host_communication.hpp"
#include "core/train/issuer.hpp"
#include "core/train/lane.hpp"

namespace carousel {

struct TrainerSpec;

/// What a tensor of a checkpoint is.
enum class StatePart : std::uint8_t {
  parameters,  // theta_t
  previous,    // theta_{t-1}; cyclic rules only
  predicted,   // what step t reads in its place; with prediction only
  optimizer,   // what it keeps beside parameters
  buffers      // running statistics that came with theta_t
};

/// Numbers of a tensor that a run has learned, or some of them, one after the other; on the host,
/// borrowed.
struct StatePiece {
  StatePart part = StatePart::parameters;
  int state = 0;  // of the optimizer, in the order of its states()
  int stage = 0;
  const ParameterSpec& spec;
  std::int64_t first = 0;
  std::span<const real> values;

  /// Most numbers of a piece: what copies from an accelerator pass through, 4 MiB.
  static constexpr std::int64_t most = (std::int64_t{4} << 20) / std::int64_t{sizeof(real)};
};
using StateVisitor = std::function<void(const StatePiece&)>;

/// Puts the numbers of a tensor where they are wanted; `state` as in StatePiece.
using StateSource = std::function<void(StatePart part, int state, const ParameterSpec& spec,
                                       std::span<real> values)>;

/// The first values of a training: of parameters and buffers those that the seed gives, of the
/// optimizer zeros.
[[nodiscard]] StateSource first_values(std::uint64_t seed);

/// What training begins with: `step` updates are done, and the next one begins at a place of the
/// data's order.
struct Beginning {
  std::int64_t step = 0;
  EpochPosition place = {};
  StateSource state = {};  // none: the first values of a training
};

/// ParametersRead tensors for those who want parts of them, and one that is asked for again and
/// again only once.
class TensorReader {
 public:
  explicit TensorReader(const StateSource& source) : source_(source) {}

  /// All of a tensor, to where it is wanted.
  void read(StatePart part, int state, const ParameterSpec& tensor, std::span<real> values) const {
    source_(part, state, tensor, values);
  }
  /// Numbers first .. first + count - 1 of it, until the next call.
  [[nodiscard]] std::span<const real> some(StatePart part, int state, const ParameterSpec& tensor,
                                           std::int64_t first, std::int64_t count);

 private:
  const StateSource& source_;
  const ParameterSpec* tensor_ = nullptr;  // the last one
  StatePart part_ = StatePart::parameters;
  int state_ = 0;
  std::vector<real> values_ = {};
};

/// Puts parameters or buffers of a piece of a stage, or with -1 of all of it, where they begin on
/// the device, as kernels read them.
void fill_frozen(const ExecutionSpace& exec, const Model& model, const StageMemory& stage,
                 TensorReader& tensors, std::byte* at, real* full);
void fill_stored(const ExecutionSpace& exec, const Model& model, const StageMemory& stage,
                 StatePart part, int piece, TensorReader& tensors, std::byte* at);

class Device {
 public:
  /// What the trainer knows of the whole run, and functions that it is told by.
  struct Hooks {
    std::int64_t total_steps = 0;
    std::function<double(std::int64_t)> learning_rate;
    std::function<void(std::int64_t, const StepSums&)> on_step;
    std::function<void(const ExecutionSpace&, std::int64_t, int, const real*)> on_update;
  };

  Device(const ExecutionSpace& exec, const TrainerSpec& spec, int index,
         HostCommunication& communication, Hooks hooks);

  [[nodiscard]] int index() const { return index_; }
  [[nodiscard]] DeviceMemory& memory() { return memory_; }
  [[nodiscard]] const DeviceMemory& memory() const { return memory_; }
  [[nodiscard]] Recorder& recorder() { return recorder_; }
  [[nodiscard]] const Executor& executor() const { return executor_; }
  [[nodiscard]] Issuer& issuer() { return issuer_; }
  [[nodiscard]] const Issuer& issuer() const { return issuer_; }
  [[nodiscard]] const Activity& activity() const { return activity_; }
  [[nodiscard]] Prefetcher& prefetcher() { return prefetcher_; }
  /// Layers of a stage that have a slow gradient, once they have computed it.
  [[nodiscard]] std::uint64_t slow_gradients(int stage) const {
    return lanes_.front()->stages[stage - counts_.first_stage].slow_gradients();
  }

  enum class State : std::uint8_t { blocked, moved, done };
  /// Hands over actions, and runs them until one waits for a message (`moved` when any ran before),
  /// one time step is over, so that devices of one process take turns in step, or all are done.
  State advance();
  /// Waits until all that was launched is over.
  void stand_still() const;

  /// Starts reading what the loads of a segment or of an evaluation will ask for.
  void prefetch(const Schedule& schedule, const TrainingOrder& order, const Segment& segment);
  void prefetch_evaluation(std::span<const Action> actions, std::int64_t samples, int batch,
                           std::int64_t version);

  /// The class that each sample of /test was taken for; where that is not kept, nothing.
  [[nodiscard]] std::vector<int> chosen() const;

  /// Shows what a stage has learned that stays on the device, piece by piece: parameters and
  /// buffers of theta_version, the parameters before, optimizer states.
  void show(const Model& model, int stage, std::int64_t version, const StateVisitor& visit) const;

 private:
  [[nodiscard]] bool is_empty() const;
  /// The next lane whose task can be run; null where there is none.
  [[nodiscard]] Lane* find_lane();
  [[nodiscard]] const StageMemory& stage(int index) const {
    return lanes_.front()->stages[index - counts_.first_stage].memory();
  }

  /// Computes every kind of action of every stage once, of this step and of an evaluation, before
  /// anything is in memory, and leaves that as it was.
  void rehearse(const TrainerSpec& spec, std::int64_t step);
  /// All that stays on the device and that a training goes on from.
  void fill(const Model& model, std::int64_t version, const StateSource& source);
  void fill_stored(const Model& model, int stage, int shard, std::int64_t version,
                   TensorReader& tensors);
  template <class At>
  void fill_copies(const Model& model, const StageMemory& stage, int shard, std::int64_t version,
                   TensorReader& tensors, const At& at);
  void fill_own(const Model& model, int stage, std::int64_t version, TensorReader& tensors);

  ExecutionSpace exec_;
  int index_;
  const BufferCounts& counts_;  // the schedule's
  int states_;                  // of the optimizer
  double predict_;              // kappa
  DeviceMemory memory_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::function<std::size_t(std::size_t)> next_lane_;  // of those that could run, if anybody asks
  std::unique_ptr<CommunicationQueue> communication_;
  Prefetcher prefetcher_;
  Kokkos::View<int*, MemorySpace> chosen_;
  Recorder recorder_;
  Activity activity_;
  Reports reports_;
  Executor executor_;
  Issuer issuer_;
  std::vector<BatchRequest> requests_;
  std::size_t turn_ = 0;  // lane that was run last
};

}  // namespace carousel
