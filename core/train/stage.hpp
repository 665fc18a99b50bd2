// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One stage of the model: its layers run one after the other on memory whose places were planned.
// It knows neither versions nor other stages; progress of messages is driven between layers.

#include <memory>
#include <vector>

#include "core/plan/stage_memory.hpp"
#include "core/train/layer.hpp"
#include "core/train/transport.hpp"

namespace carousel {

/// The memory of one pass of one micro-batch through one stage.
struct StageArguments {
  int samples = 0;              // n; at most the micro-batch size the stage was planned for
  const real* input = nullptr;  // [n, c, h, w], from the stage before or the images
  std::byte* frame = nullptr;   // saved activations
  std::byte* scratch = nullptr;
  const real* parameters = nullptr;  // flat
  real* d_parameters = nullptr;      // flat, backward only
  real* d_output = nullptr;          // backward only; absent for the last stage
  real* d_input = nullptr;           // backward only; absent for the first stage
  const int* labels = nullptr;       // last stage only
  Metrics* metrics = nullptr;        // last stage, forward only
};

class Stage {
 public:
  Stage(const Model& model, const StageMemory& memory, const LayerFactory& factory);

  void forward(const ExecutionSpace& exec, const StageArguments& arguments, Transport& transport);
  void backward(const ExecutionSpace& exec, const StageArguments& arguments, Transport& transport);

  [[nodiscard]] const StageMemory& memory() const { return memory_; }
  /// The stage's last activation inside its frame.
  [[nodiscard]] const real* output(const std::byte* frame) const;

 private:
  [[nodiscard]] static real* resolve(const Place& place, const StageArguments& arguments);

  StageMemory memory_;
  std::vector<LayerSpec> specs_;
  std::vector<std::unique_ptr<Layer>> layers_;
};

}  // namespace carousel
