// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/costs.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/real.hpp"

namespace carousel {
namespace {

Work forward_of(const Model& model, int l, int batch) {
  const LayerSpec& layer = model.layers[l];
  if (layer.only_reshapes()) return {};
  // What is converted is read in one form and written in the other, as large as a tensor and its
  // gradient.
  std::int64_t bytes = tensor_bytes(layer.output, layer.output_format, batch) +
                       layer.parameter_size() * std::int64_t{sizeof(real)} +
                       layer.conversion_bytes(batch);
  for (const LayerInput& input : layer.inputs)
    bytes += tensor_bytes(input.shape, input.format, batch);
  return {batch * layer.forward_flops, static_cast<double>(bytes)};
}

Work backward_of(const Model& model, int l, int batch) {
  const Work forward = forward_of(model, l, batch);
  const int again = model.recomputes_stages ? 1 : 0;
  return {batch * model.layers[l].backward_flops + again * forward.flops,
          (2 + again) * forward.bytes};
}

double sum_of_rooflines(std::span<const Work> layers, const Machine& machine) {
  double seconds = 0;
  for (const Work& work : layers) seconds += roofline_seconds(work, machine);
  return seconds;
}

}  // namespace

std::vector<StageCosts> stage_costs(const Model& model, const Partition& partition, int batch,
                                    int states) {
  std::vector<StageCosts> stages(partition.stages());
  for (int j = 0; j < partition.stages(); ++j) {
    StageCosts& stage = stages[j];
    double parameters = 0;
    double buffers = 0;
    for (int l = partition.first[j]; l < partition.first[j + 1]; ++l) {
      stage.forward.push_back(forward_of(model, l, batch));
      stage.backward.push_back(backward_of(model, l, batch));
      parameters += static_cast<double>(model.layers[l].learned_size());
      buffers += static_cast<double>(model.layers[l].buffer_size());
    }
    stage.copy.bytes = 2 * sizeof(real) * (parameters + buffers);
    stage.accumulate.bytes = 3 * sizeof(real) * (parameters + buffers);
    stage.measure.bytes = sizeof(real) * parameters;
    stage.update.bytes = sizeof(real) * parameters * (3 + 2 * states);
  }
  stages[0].load.bytes = 2.0 * sizeof(real) * batch * static_cast<double>(model.input.size());
  return stages;
}

std::vector<double> layer_times(const Model& model, int batch, const Machine& machine) {
  constexpr double picoseconds = 1e12;
  std::vector<double> times;
  for (int l = 0; l < std::ssize(model.layers); ++l) {
    const double seconds = roofline_seconds(forward_of(model, l, batch), machine) +
                           roofline_seconds(backward_of(model, l, batch), machine);
    times.push_back(std::round(picoseconds * seconds));
  }
  return times;
}

Partition cut_model(const Model& model, const ParallelConfig& parallel, int batch,
                    const std::optional<Machine>& machine) {
  if (parallel.balance != Balance::time)
    return partition_model(model, parallel.stages, parallel.balance);
  if (!machine)
    fail(ExitCode::usage,
         "parallel.balance = \"time\" needs a [machine] table, which says how long layers take");
  return partition_model(model, parallel.stages, layer_times(model, batch, *machine));
}

double roofline_seconds(const Work& work, const Machine& machine) {
  return std::max(work.flops / machine.flops, work.bytes / machine.memory_bandwidth);
}

double StageSeconds::of(ActionKind kind) const {
  switch (kind) {
    case ActionKind::load:
      return load;
    case ActionKind::copy:
      return copy;
    case ActionKind::forward:
      return forward;
    case ActionKind::backward:
      return backward;
    case ActionKind::accumulate:
      return accumulate;
    case ActionKind::measure:
      return measure;
    case ActionKind::update:
      return update;
    default:
      return 0;
  }
}

std::vector<StageSeconds> stage_seconds(const std::vector<StageCosts>& costs,
                                        const Machine& machine) {
  std::vector<StageSeconds> seconds;
  for (const StageCosts& stage : costs)
    seconds.push_back({.load = roofline_seconds(stage.load, machine),
                       .copy = roofline_seconds(stage.copy, machine),
                       .forward = sum_of_rooflines(stage.forward, machine),
                       .backward = sum_of_rooflines(stage.backward, machine),
                       .accumulate = roofline_seconds(stage.accumulate, machine),
                       .measure = roofline_seconds(stage.measure, machine),
                       .update = roofline_seconds(stage.update, machine)});
  return seconds;
}

std::function<double(int, const Action&)> action_seconds(
    std::vector<StageSeconds> stages, const std::vector<std::vector<PieceBytes>>& pieces) {
  std::vector<std::vector<double>> shares;  // [stage][piece] of the numbers of the stage
  for (const std::vector<PieceBytes>& stage : pieces) {
    double all = 0;
    for (const PieceBytes& piece : stage) all += static_cast<double>(piece.gradients);
    shares.emplace_back();
    for (const PieceBytes& piece : stage)
      shares.back().push_back(static_cast<double>(piece.gradients) / all);
  }
  return [stages = std::move(stages), shares = std::move(shares)](int, const Action& action) {
    const double whole = stages[std::max(action.stage, 0)].of(action.kind);
    return action.piece < 0 ? whole : whole * shares[action.stage][action.piece];
  };
}

}  // namespace carousel
