// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One stage of the model: its layers run one after the other on memory whose places were planned.
// It knows neither versions nor other stages; progress of messages is driven between layers.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/workers.hpp"
#include "core/engine/layer.hpp"
#include "core/model/model.hpp"
#include "core/plan/program.hpp"
#include "core/plan/stage_memory.hpp"

namespace carousel {

/// The memory of one pass of one micro-batch through one stage.
struct StageArguments {
  int samples = 0;                     // n; at most the micro-batch size the stage was planned for
  const real* images = nullptr;        // [n, c, h, w]; first stage only
  const std::byte* landing = nullptr;  // what came from the stage before, on another device
  std::span<std::byte*> frames;  // [S] saved activations of the micro-batch, of the device's stages
  std::byte* scratch = nullptr;
  const std::byte* parameters = nullptr;  // flat, as they are stored
  const std::byte* frozen = nullptr;      // likewise, of frozen layers
  real* d_parameters = nullptr;           // flat, backward only
  std::byte* d_output = nullptr;  // boundary gradients, backward only; none of the last stage
  std::byte* d_input = nullptr;   // boundary gradients, backward only; none of the first stage
  const void* targets = nullptr;  // [n, target of the source]; last stage only
  double* report = nullptr;       // last stage, forward only
  int* chosen = nullptr;          // [n], likewise, if wanted
  real* outputs = nullptr;        // [n, outputs], likewise, instead of a report
  bool training = true;
  Draw draw = {};
};

/// What the kernels of a layer do in one pass.
struct LayerWork {
  Work forward;
  Work backward;
};

class Stage {
 public:
  /// Stage `index` of `stages`, planned for micro-batches of `samples`, on a device that runs those
  /// of `counts`.
  Stage(const Model& model, std::span<const StageMemory> stages, int index, int samples,
        const BufferCounts& counts, const LayerFactory& factory, const Engine& engine);

  void forward(const Workers& workers, const StageArguments& arguments);
  void backward(const Workers& workers, const StageArguments& arguments);

  [[nodiscard]] const StageMemory& memory() const { return memory_; }
  /// Layers that have a slow gradient, once they have computed it.
  [[nodiscard]] std::uint64_t slow_gradients() const;

 private:
  [[nodiscard]] const real* parameters(int k, const StageArguments& arguments) const;
  void run_layers(const Workers& workers, const StageArguments& arguments);
  /// Forward of layer k, `again` if it has run and left what it saves.
  void run_layer(const Workers& workers, int k, const Place& output, bool again,
                 const StageArguments& arguments);
  [[nodiscard]] static real* resolve(const Place& place, const StageArguments& arguments);

  void find_landings(const StageMemory& first, int first_stage);
  void pass_by(const StageMemory& next, int index);

  StageMemory memory_;
  std::vector<PassedTensor> passing_;  // activations that other stages made and others will use
  std::vector<LayerSpec> specs_;
  std::vector<LayerWork> work_;  // of whole micro-batches
  std::vector<std::unique_ptr<Layer>> layers_;
};

}  // namespace carousel
