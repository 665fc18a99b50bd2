// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/stage_memory.hpp"

#include <algorithm>
#include <array>

#include "core/base/check.hpp"
#include "core/base/real.hpp"

namespace carousel {
namespace {

constexpr std::int64_t real_bytes = sizeof(real);

/// Two areas of scratch memory, taken in turn: in a chain a tensor is dead once the next is made.
class Alternating {
 public:
  /// Place of the next tensor; offsets of the second area are known only after settle().
  Place next(std::int64_t bytes) {
    const int area = turn_++ % 2;
    largest_[area] = std::max(largest_[area], bytes);
    return {Region::scratch, area};
  }
  void settle(std::vector<Place>& places) const {
    for (Place& place : places) {
      if (place.region == Region::scratch) place.offset = place.offset == 0 ? 0 : largest_[0];
    }
  }
  [[nodiscard]] std::int64_t bytes() const { return largest_[0] + largest_[1]; }

 private:
  int turn_ = 0;
  std::array<std::int64_t, 2> largest_ = {0, 0};
};

/// Whether any backward reads the memory that layer l writes, which layers in place share.
bool output_is_read_again(const Model& model, int l) {
  for (int user = l;; ++user) {
    if (model.layers[user].saves_output) return true;
    if (user + 1 == static_cast<int>(model.layers.size())) return false;
    if (model.layers[user + 1].saves_input) return true;
    if (!model.layers[user + 1].in_place) return false;
  }
}

/// Whether the memory that layer k of the stage writes is the stage's output in the end.
bool leaves_stage(const StageMemory& stage, const Model& model, int k) {
  while (k + 1 < stage.layers && model.layers[stage.first + k + 1].in_place) ++k;
  return k + 1 == stage.layers;
}

void place_outputs(StageMemory& stage, const Model& model, int batch) {
  Alternating scratch;
  for (int k = 0; k < stage.layers; ++k) {
    const int l = stage.first + k;
    const LayerSpec& layer = model.layers[l];
    const std::int64_t bytes = align_up(batch * layer.output.size() * real_bytes);
    if (layer.in_place) {
      stage.outputs.push_back(k == 0 ? Place{Region::stage_input} : stage.outputs[k - 1]);
    } else if (leaves_stage(stage, model, k) || output_is_read_again(model, l)) {
      // The next stage finds its input in this frame.
      stage.outputs.push_back({Region::frame, stage.frame_bytes});
      stage.frame_bytes += bytes;
    } else {
      stage.outputs.push_back(scratch.next(bytes));
    }
    if (k == stage.layers - 1) stage.output_bytes = bytes;
  }
  scratch.settle(stage.outputs);
  stage.scratch_bytes = std::max(stage.scratch_bytes, scratch.bytes());
}

void place_gradients(StageMemory& stage, const Model& model, int batch) {
  Alternating scratch;
  stage.d_inputs.resize(stage.layers);
  std::int64_t parameters_before = 0;
  for (int l = 0; l < stage.first; ++l) parameters_before += model.layers[l].parameter_size();
  Place arriving{Region::d_output};
  for (int k = stage.layers - 1; k >= 0; --k) {
    const LayerSpec& layer = model.layers[stage.first + k];
    std::int64_t before = parameters_before;
    for (int l = 0; l < k; ++l) before += model.layers[stage.first + l].parameter_size();
    const bool is_loss = stage.first + k + 1 == static_cast<int>(model.layers.size());
    if (before == 0)
      stage.d_inputs[k] = {};  // nothing before it learns
    else if (k == 0)
      stage.d_inputs[k] = {Region::d_input};
    else if (layer.in_place && !is_loss)
      stage.d_inputs[k] = arriving;
    else
      stage.d_inputs[k] = scratch.next(align_up(batch * layer.input.size() * real_bytes));
    arriving = stage.d_inputs[k];
  }
  scratch.settle(stage.d_inputs);
  stage.scratch_bytes = std::max(stage.scratch_bytes, scratch.bytes());
}

}  // namespace

std::vector<StageMemory> plan_stages(const Model& model, const Partition& partition, int batch) {
  std::vector<StageMemory> stages;
  for (int j = 0; j < partition.stages(); ++j) {
    StageMemory stage;
    stage.first = partition.first[j];
    stage.layers = partition.first[j + 1] - stage.first;
    CAROUSEL_CHECK(j == 0 || !model.layers[stage.first].in_place,
                   "stage {} begins with layer {}, which works in place", j, stage.first);
    place_outputs(stage, model, batch);
    place_gradients(stage, model, batch);
    for (int k = 0; k < stage.layers; ++k) {
      stage.parameter_offset.push_back(stage.parameter_size);
      stage.parameter_size += model.layers[stage.first + k].parameter_size();
    }
    stage.message_size = align_up((stage.parameter_size + rider_size) * real_bytes) / real_bytes;
    stages.push_back(std::move(stage));
  }
  return stages;
}

}  // namespace carousel
