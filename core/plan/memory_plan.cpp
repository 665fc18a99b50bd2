// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory_plan.hpp"

#include <algorithm>
#include <numeric>

#include "core/base/check.hpp"
#include "core/base/real.hpp"
#include "core/base/text.hpp"
#include "core/optim/norm_blocks.hpp"
#include "core/plan/account.hpp"
#include "core/plan/evaluation.hpp"
#include "core/plan/staging.hpp"

namespace carousel {
namespace {

/// Hands out aligned offsets of one arena after the other.
class Offsets {
 public:
  explicit Offsets(CategoryBytes& bytes) : bytes_(bytes) {}

  std::int64_t take(Category category, std::int64_t bytes) {
    std::int64_t& used = bytes_[static_cast<std::size_t>(category)];
    const std::int64_t offset = used;
    used += align_up(bytes);
    return offset;
  }

 private:
  CategoryBytes& bytes_;
};

std::int64_t message_bytes(const StageMemory& stage) {
  return stage.message_size * static_cast<std::int64_t>(sizeof(real));
}

/// Of a stage or, if there is a shard, of the largest piece of it.
std::int64_t gradient_bytes(const StageMemory& stage, int shard) {
  if (shard < 0) return message_bytes(stage);
  std::int64_t largest = 0;
  for (int p = shard; p < std::ssize(stage.pieces); p += stage.shards)
    largest = std::max(largest, stage.pieces[p].size());
  return largest * static_cast<std::int64_t>(sizeof(real));
}

/// A stage, all of them in one sum over all devices, what crosses a cut, or the results of an
/// evaluation.
std::int64_t largest_message(const MemorySpec& spec, std::int64_t report,
                             const Schedule& schedule) {
  const ParallelConfig& parallel = schedule.parallel();
  const bool sums = parallel.rule == RuleKind::dp && parallel.reduction == Reduction::fast &&
                    schedule.traits().sums_all_stages && !parallel.shards;
  const bool cuts = schedule.traits().splits_stages;
  std::int64_t largest = std::max(spec.evaluation_batches * report, schedule.spec().norm_bytes);
  std::int64_t sum = 0;
  for (int j = 0; j < schedule.rule().stages(); ++j) {
    sum += schedule.message_bytes(j);
    largest = std::max(largest, sums ? sum : schedule.message_bytes(j));
    largest = std::max(largest, schedule.parameter_bytes(j));
    if (!cuts) continue;
    largest = std::max(largest, schedule.spec().activation_bytes[j]);
    largest = std::max(largest, schedule.spec().d_activation_bytes[j]);
  }
  return largest;
}

DeviceMemoryPlan plan_device(const MemorySpec& spec, const std::vector<StageMemory>& stages,
                             const Schedule& schedule, int device,
                             std::int64_t communication_bytes) {
  const BufferCounts& counts = schedule.buffers(device);
  DeviceMemoryPlan plan;
  Offsets offsets(plan.bytes);
  const int count = static_cast<int>(stages.size());
  std::int64_t largest_stage = 0;
  for (const StageMemory& stage : stages)
    largest_stage = std::max(largest_stage, stage.stored_bytes);
  for (int copy = 0; copy < counts.parameter_copies; ++copy) {
    const Category category = copy == 0 ? Category::parameters : Category::previous_parameters;
    plan.parameters.emplace_back(count, -1);
    for (const int j : counts.owned)
      plan.parameters.back()[j] = offsets.take(category, stages[j].stored_bytes);
    for (const int j : counts.kept)
      plan.parameters.back()[j] = offsets.take(category, stages[j].stored_of_shard(counts.shard));
  }
  plan.predicted.resize(count);
  for (const int j : counts.owned) {
    for (int k = 0; counts.reads_of(j) == ParametersRead::both && k < counts.parameter_copies; ++k)
      plan.predicted[j].push_back(offsets.take(Category::parameters, stages[j].stored_bytes));
  }
  for (int j = 0; j < count; ++j) {
    const bool runs = j >= counts.first_stage && j <= counts.last_stage;
    const bool has_frozen = runs && stages[j].frozen_bytes > 0;
    plan.frozen.push_back(has_frozen ? offsets.take(Category::parameters, stages[j].frozen_bytes)
                                     : -1);
  }
  for (int k = 0; k < counts.travelling; ++k)
    plan.travelling.push_back(offsets.take(Category::parameters, largest_stage));
  for (const auto& [held, shard] : counts.gradients) {
    std::int64_t largest = 0;
    for (const int j : held) {
      largest = std::max(largest, gradient_bytes(stages[j], shard));
    }
    plan.gradients.push_back(offsets.take(Category::gradients, largest));
  }
  const bool clips = spec.optimizer.clipping() != Clipping::none;
  const auto states = std::ssize(spec.optimizer.states());
  if (clips)
    plan.norms = offsets.take(Category::gradients, (count + 1) * std::int64_t{sizeof(real)});
  for (int j = 0; j < count; ++j) {
    const bool asks = counts.optimizer[j] || spec.optimizer.clipping() == Clipping::model;
    const bool blocks = clips && counts.shard >= 0 && asks;
    plan.block_sums.push_back(
        blocks ? offsets.take(Category::gradients, norm_bytes(stages[j].parameter_size)) : -1);
  }
  std::int64_t scratch = 0;
  plan.frame_bytes = frame_bytes(schedule, stages, device);
  for (int j = 0; j < count; ++j) {
    const std::int64_t full_bytes =
        stages[j].parameters_of_shard(counts.shard) * std::int64_t{sizeof(real)};
    const bool state = counts.optimizer[j] && states > 0;
    plan.optimizer.push_back(state ? offsets.take(Category::optimizer, states * full_bytes) : -1);
    // Prediction makes of theta_t and theta_{t-1} what passes read, and needs both in full.
    const ParametersRead reads = counts.reads_of(j);
    const bool predicts = reads == ParametersRead::predicted ||
                          (reads == ParametersRead::both && stages[j].keeps_full);
    const int full = !counts.optimizer[j] ? 0 : predicts ? 2 : stages[j].keeps_full ? 1 : 0;
    plan.full.emplace_back();
    for (int copy = 0; copy < full; ++copy)
      plan.full.back().push_back(offsets.take(Category::optimizer, full_bytes));
    const bool keeps_frozen = counts.optimizer[j] && counts.shard <= 0 && stages[j].frozen_full > 0;
    plan.frozen_full.push_back(
        keeps_frozen
            ? offsets.take(Category::optimizer, stages[j].frozen_full * std::int64_t{sizeof(real)})
            : -1);
    plan.frames.emplace_back();
    for (int k = 0; k < counts.frames[j]; ++k)
      plan.frames[j].push_back(offsets.take(Category::activations, plan.frame_bytes[j]));
    plan.boundaries.emplace_back();
    const bool inside = j >= counts.first_stage && j < counts.last_stage;
    for (int k = 0; k < counts.boundaries[j]; ++k)
      plan.boundaries[j].push_back(
          offsets.take(Category::boundary,
                       inside ? stages[j].output_bytes : schedule.spec().d_activation_bytes[j]));
    if (j < counts.first_stage || j > counts.last_stage) continue;
    scratch = std::max(scratch, stages[j].scratch_bytes);
    plan.workspace_bytes = std::max(plan.workspace_bytes, stages[j].workspace_bytes);
    if (clips && plan.parameters.front()[j] >= 0)
      plan.workspace_bytes =
          std::max(plan.workspace_bytes, align_up(norm_bytes(stages[j].parameter_size)));
    if (counts.optimizer[j])
      plan.workspace_bytes =
          std::max(plan.workspace_bytes,
                   align_up(spec.optimizer.workspace_bytes(stages[j].largest_tensor())));
  }
  for (int k = 0; counts.lands() && k < counts.frames[counts.first_stage]; ++k)
    plan.landings.push_back(
        offsets.take(Category::boundary, schedule.spec().activation_bytes[counts.first_stage - 1]));
  for (int queue = 0; queue < spec.compute_queues; ++queue) {
    plan.scratches.push_back(offsets.take(Category::scratch, scratch));
    plan.workspaces.push_back(offsets.take(Category::workspace, plan.workspace_bytes));
  }
  offsets.take(Category::communication, communication_bytes);
  const std::int64_t samples = spec.micro_batch_size;
  const bool reads_inputs = counts.first_stage == 0;
  const bool reads_targets = counts.last_stage + 1 == count;
  for (int k = 0; k < counts.inputs; ++k) {
    if (reads_inputs)
      plan.images.push_back(
          offsets.take(Category::data, samples * spec.input.size() * std::int64_t{sizeof(real)}));
    if (reads_targets)
      plan.targets.push_back(offsets.take(Category::data, samples * spec.target_bytes));
    plan.samples.push_back(offsets.take(Category::data, samples * std::int64_t{sizeof(int)}));
  }
  if (reads_inputs && spec.shows_images) {
    plan.levels = offsets.take(Category::data, std::int64_t{spec.input.channels} * pixel_levels *
                                                   std::int64_t{sizeof(real)});
    if (spec.read_bytes > 0) {
      plan.read = offsets.take(Category::data, samples * spec.read_bytes);
      plan.parts = offsets.take(Category::data, samples * part_bytes);
    }
  }
  const std::int64_t report = report_bytes(stages.back().sums);
  plan.reports = offsets.take(Category::data, schedule.rule().micro_batches() * report);
  const std::int64_t evaluated = device == 0
                                     ? spec.evaluation_batches
                                     : evaluation_share(schedule, spec.evaluation_batches, device);
  plan.evaluation = offsets.take(Category::data, evaluated * report);
  plan.staging = offsets.take(Category::data, spec.staging_bytes +
                                                  (reads_inputs ? spec.input_staging_bytes : 0) +
                                                  (reads_targets ? spec.target_staging_bytes : 0));
  plan.peak = plan.bytes;
  plan.peak[static_cast<std::size_t>(Category::activations)] =
      peak_activations(schedule, stages, device, schedule.window());
  return plan;
}

std::vector<PieceBytes> piece_bytes(const StageMemory& stage, bool measures) {
  std::vector<PieceBytes> bytes;
  for (int p = 0; p < std::ssize(stage.pieces); ++p) {
    const StagePiece& piece = stage.pieces[p];
    bytes.push_back({.gradients = piece.size() * static_cast<std::int64_t>(sizeof(real)),
                     .parameters = piece.stored_end - piece.stored_begin,
                     .norms = measures ? norm_bytes(stage.parameters_of(p)) : 0});
  }
  return bytes;
}

}  // namespace

std::int64_t DeviceMemoryPlan::total() const {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

ScheduleSpec schedule_spec(const ParallelConfig& parallel, const std::vector<StageMemory>& stages,
                           Clipping clipping) {
  CAROUSEL_CHECK(clipping != Clipping::model || parallel.rule == RuleKind::dp,
                 "rule {} has no moment at which all gradients are known",
                 to_string(parallel.rule));
  ScheduleSpec spec{.parallel = parallel};
  spec.rider_bytes = stages.front().rider() * std::int64_t{sizeof(real)};
  constexpr std::int64_t ages_bytes = align_up(ages_size * sizeof(real));
  if (clipping == Clipping::model)
    spec.norm_bytes = std::ssize(stages) * std::int64_t{sizeof(real)};
  for (std::size_t j = 0; j < stages.size(); ++j) {
    const bool last = j + 1 == stages.size();
    spec.message_bytes.push_back(message_bytes(stages[j]));
    spec.parameter_bytes.push_back(stages[j].stored_bytes);
    if (!stages[j].pieces.empty())
      spec.pieces.push_back(piece_bytes(stages[j], clipping != Clipping::none));
    spec.activation_bytes.push_back(last ? 0 : stages[j + 1].input_bytes + ages_bytes);
    spec.d_activation_bytes.push_back(last ? 0
                                           : stages[j].output_bytes + align_up(spec.rider_bytes));
  }
  return spec;
}

MemoryPlan plan_memory(const MemorySpec& spec, std::vector<StageMemory> stages,
                       const Schedule& schedule) {
  MemoryPlan plan;
  const std::int64_t report = report_bytes(stages.back().sums);
  plan.evaluation_batches = spec.evaluation_batches;
  plan.largest_message = largest_message(spec, report, schedule);
  plan.optimizer_states = static_cast<int>(spec.optimizer.states().size());
  std::vector<std::int64_t> communication(schedule.devices(), spec.token_bytes);
  if (spec.staged_messages && schedule.devices() > 1)
    communication = staging_bytes(schedule, spec.evaluation_batches, report);
  for (int d = 0; d < schedule.devices(); ++d)
    plan.devices.push_back(plan_device(spec, stages, schedule, d, communication[d]));
  plan.stages = std::move(stages);
  return plan;
}

Baselines activation_baselines(const std::vector<StageMemory>& stages, int micro_batches) {
  Baselines baselines;
  for (const StageMemory& stage : stages) baselines.accumulate += stage.frame_bytes;
  baselines.together = micro_batches * baselines.accumulate;
  return baselines;
}

std::string to_string(const MemoryPlan& plan) {
  // Wide plans show the first devices and the sum; 80 columns hold five.
  const int devices = static_cast<int>(plan.devices.size());
  const int shown = std::min(devices, 4);
  std::string text = fmt::format("{:<20}", "memory on device");
  for (int d = 0; d < shown; ++d) text += fmt::format(" {:>11}", d);
  text += devices == 1 ? "\n" : fmt::format(" {:>11}\n", "all");
  for (int c = 0; c <= category_count; ++c) {
    const auto bytes = [&](const DeviceMemoryPlan& device) {
      return c == category_count ? device.total() : device.bytes[c];
    };
    std::int64_t all = 0;
    for (const DeviceMemoryPlan& device : plan.devices) all += bytes(device);
    text +=
        fmt::format("{:<20}", c == category_count ? "total" : to_string(static_cast<Category>(c)));
    for (int d = 0; d < shown; ++d)
      text += fmt::format(" {:>11}", human_bytes(bytes(plan.devices[d])));
    text += devices == 1 ? "\n" : fmt::format(" {:>11}\n", human_bytes(all));
  }
  return text;
}

}  // namespace carousel
