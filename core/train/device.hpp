// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One device of the plan as it lives in a process: its memory, kernels, data, transport and
// executor, put together once. It drives nothing.

#include <memory>
#include <vector>

#include "core/train/executor.hpp"

namespace carousel {

struct TrainerSpec;

/// Puts the values of a parameter or of a buffer where they are wanted.
using ParameterSource = std::function<void(const ParameterSpec&, std::span<real>)>;

class Device {
 public:
  /// What the trainer knows of the whole run, and functions that an executor calls.
  struct Hooks {
    std::int64_t total_steps = 0;
    std::function<double(std::int64_t)> learning_rate;
    std::function<void(std::int64_t, const StepSums&)> on_step;
    std::function<void(std::int64_t, int, const real*)> on_update;
    std::function<void(const Action&, std::span<const real>)> on_save;
  };

  Device(const ExecutionSpace& exec, const TrainerSpec& spec, int index, Hooks hooks);

  [[nodiscard]] int index() const { return index_; }
  [[nodiscard]] DeviceMemory& memory() { return memory_; }
  [[nodiscard]] const DeviceMemory& memory() const { return memory_; }
  [[nodiscard]] Recorder& recorder() { return recorder_; }
  [[nodiscard]] Executor& executor() { return executor_; }
  [[nodiscard]] const Executor& executor() const { return executor_; }
  [[nodiscard]] const Activity& activity() const { return activity_; }
  [[nodiscard]] Prefetcher& prefetcher() { return prefetcher_; }

  /// Starts reading what the loads of a segment or of an evaluation will ask for.
  void prefetch(const Schedule& schedule, const TrainingOrder& order, const Segment& segment);
  void prefetch_evaluation(std::span<const Action> actions, std::int64_t samples, int batch,
                           std::int64_t version);

  /// Replaces the parameters and buffers of one version, of the stages that stay on the device.
  void fill(const ExecutionSpace& exec, const Model& model, std::int64_t version,
            const ParameterSource& source);

 private:
  int index_;
  int first_stage_;
  std::vector<int> owned_;  // stages whose parameters stay here
  DeviceMemory memory_;
  std::vector<Stage> stages_;
  std::unique_ptr<Transport> transport_;
  Prefetcher prefetcher_;
  Recorder recorder_;
  Activity activity_;
  Executor executor_;
  std::vector<BatchRequest> requests_;
};

}  // namespace carousel
