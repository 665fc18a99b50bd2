// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/costs.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "core/base/real.hpp"

namespace carousel {
namespace {

Work forward_of(const Model& model, int l, double batch) {
  const LayerSpec& layer = model.layers[l];
  if (layer.kind == LayerKind::flatten) return {};
  const auto inputs = static_cast<double>(input_layers(model, l).size());
  const double per_sample =
      inputs * static_cast<double>(layer.input.size()) + static_cast<double>(layer.output.size());
  return {batch * layer.forward_flops,
          sizeof(real) * (batch * per_sample + static_cast<double>(layer.parameter_size()))};
}

double sum_of_rooflines(std::span<const Work> layers, const Machine& machine) {
  double seconds = 0;
  for (const Work& work : layers) seconds += roofline_seconds(work, machine);
  return seconds;
}

/// Seconds of the actions of one stage.
struct StageSeconds {
  double load = 0;
  double forward = 0;
  double backward = 0;
  double accumulate = 0;
  double update = 0;

  [[nodiscard]] double of(ActionKind kind) const {
    switch (kind) {
      case ActionKind::load:
        return load;
      case ActionKind::forward:
        return forward;
      case ActionKind::backward:
        return backward;
      case ActionKind::accumulate:
        return accumulate;
      case ActionKind::update:
        return update;
      default:
        return 0;
    }
  }
};

}  // namespace

std::vector<StageCosts> stage_costs(const Model& model, const Partition& partition, int batch,
                                    int states) {
  std::vector<StageCosts> stages(partition.stages());
  for (int j = 0; j < partition.stages(); ++j) {
    StageCosts& stage = stages[j];
    double parameters = 0;
    double buffers = 0;
    for (int l = partition.first[j]; l < partition.first[j + 1]; ++l) {
      const Work forward = forward_of(model, l, batch);
      stage.forward.push_back(forward);
      stage.backward.push_back({batch * model.layers[l].backward_flops, 2 * forward.bytes});
      parameters += static_cast<double>(model.layers[l].parameter_size());
      buffers += static_cast<double>(model.layers[l].buffer_size());
    }
    stage.accumulate.bytes = 3 * sizeof(real) * (parameters + buffers);
    stage.update.bytes = sizeof(real) * parameters * (3 + 2 * states);
  }
  stages[0].load.bytes = 2.0 * sizeof(real) * batch * static_cast<double>(model.input.size());
  return stages;
}

double roofline_seconds(const Work& work, const Machine& machine) {
  return std::max(work.flops / machine.flops, work.bytes / machine.memory_bandwidth);
}

std::function<double(int, const Action&)> action_seconds(const std::vector<StageCosts>& costs,
                                                         const Machine& machine) {
  std::vector<StageSeconds> seconds;
  for (const StageCosts& stage : costs)
    seconds.push_back({.load = roofline_seconds(stage.load, machine),
                       .forward = sum_of_rooflines(stage.forward, machine),
                       .backward = sum_of_rooflines(stage.backward, machine),
                       .accumulate = roofline_seconds(stage.accumulate, machine),
                       .update = roofline_seconds(stage.update, machine)});
  // A load names no stage.
  return [seconds = std::move(seconds)](int, const Action& action) {
    return seconds[std::max(action.stage, 0)].of(action.kind);
  };
}

}  // namespace carousel
