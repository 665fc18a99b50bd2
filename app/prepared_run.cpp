// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/prepared_run.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <climits>

#include "core/base/check.hpp"
#include "core/base/version.hpp"
#include "core/data/prefetcher.hpp"
#include "core/plan/checker.hpp"
#include "core/plan/costs.hpp"
#include "core/plan/estimate.hpp"
#include "core/plan/grid.hpp"
#include "core/plan/routes.hpp"

namespace carousel {
namespace {

/// Kernels count the pixels of a micro-batch in int; the first layer that has more.
const LayerSpec* too_many_pixels(const Model& model, int batch) {
  for (const LayerSpec& layer : model.layers) {
    const SampleShape& largest =
        layer.input.size() > layer.output.size() ? layer.input : layer.output;
    if (std::int64_t{batch} * largest.height * largest.width > INT_MAX) return &layer;
  }
  return nullptr;
}

/// The first batch norm that has a single value per channel.
const LayerSpec* single_values(const Model& model, int batch) {
  for (const LayerSpec& layer : model.layers) {
    const bool single = std::int64_t{batch} * layer.input.height * layer.input.width == 1;
    if (layer.kind == LayerKind::batch_norm && single) return &layer;
  }
  return nullptr;
}

MemorySpec memory_spec(const RunConfig& config, const PlanBasis& basis, int batch) {
  const auto staging = [&](const SampleShape& sample) {
    return Prefetcher::planned_bytes(sample, basis.train_samples, batch, staged_batches);
  };
  return {.input = basis.sample,
          .micro_batch_size = batch,
          .optimizer_state = config.train.optimizer.momentum != 0,
          .evaluation_batches = (basis.test_samples + batch - 1) / batch,
          .staging_bytes = staging(basis.sample),
          .label_staging_bytes = staging({}),
          .staged_messages = basis.staged_messages};
}

PreparedRun build(const RunConfig& config, const PlanBasis& basis) {
  const int batch = config.train.micro_batch_size;
  Model model = build_model(config.model, basis.sample, basis.classes);
  if (const LayerSpec* layer = too_many_pixels(model, batch))
    fail(ExitCode::usage,
         "train.micro_batch_size = {} gives {} more than {} pixels; use a smaller one and more "
         "micro-batches",
         batch, layer->label(), INT_MAX);
  model.layers.back().smoothing = config.train.label_smoothing;  // the loss
  Partition partition = cut_model(model, config.parallel, batch, config.machine);
  std::vector<StageMemory> stages = plan_stages(model, partition, batch);

  Schedule schedule(schedule_spec(config.parallel, stages));
  check_schedule(schedule);

  // Throws when there is not a single training step in the data.
  const TrainingOrder order{basis.train_samples, config.parallel.micro_batches, batch};
  static_cast<void>(order.steps_per_epoch());
  MemoryPlan plan = plan_memory(memory_spec(config, basis, batch), std::move(stages), schedule);
  return {basis, std::move(model), std::move(partition), std::move(schedule), std::move(plan)};
}

void check_message_sizes(const PreparedRun& run) {
  if (run.schedule.devices() == 1) return;
  for (int j = 0; j < run.schedule.rule().stages(); ++j) {
    const std::int64_t bytes = run.schedule.message_bytes(j);
    if (bytes > INT_MAX)
      fail(ExitCode::usage,
           "parallel.stages = {} makes stage {} of {} bytes, and a message of MPI holds {}; use "
           "more stages, or balance = \"parameters\"",
           run.schedule.rule().stages(), j, bytes, INT_MAX);
  }
  if (run.memory.largest_message > INT_MAX)
    fail(ExitCode::usage,
         "parallel.reduction = \"{}\" makes a message of {} bytes, and a message of MPI holds {}; "
         "use \"ordered\" or more stages",
         to_string(run.schedule.parallel().reduction), run.memory.largest_message, INT_MAX);
}

/// What making a checkpoint takes: its file, and beside it a part of a stage thrice (as a piece of
/// a message, as a whole, as HDF5 sums it) or, in the end, the image that goes to disk.
std::int64_t host_bytes(const CheckpointSize& size, const Schedule& schedule) {
  const std::int64_t part = std::ranges::max(schedule.spec().message_bytes);
  return CheckpointWriter::library_bytes + size.file_bytes() +
         std::max(size.file_bytes(), 3 * part);
}

PlanRecord record_of(const PreparedRun& run, const std::vector<Route>& routes) {
  const Rule& rule = run.schedule.rule();
  const ParallelConfig& parallel = run.schedule.parallel();
  PlanRecord record;
  record.rule = to_string(parallel.rule);
  record.placement = to_string(parallel.placement);
  record.order = to_string(parallel.order);
  record.devices = run.schedule.devices();
  record.micro_batches = rule.micro_batches();
  record.stages = rule.stages();
  for (int d = 0; d < record.devices; ++d) {
    const Traffic sent = traffic(run.schedule, d);
    record.bytes.push_back(run.memory.devices[d].peak);
    const std::int64_t shares = run.schedule.program(d).team;
    record.messages_per_step.push_back((sent.messages + shares / 2) / shares);
    record.bytes_per_step.push_back((sent.bytes + shares / 2) / shares);
  }
  std::int64_t collectives = 0;
  for (const Route& route : routes) {
    if (route.group >= 0) collectives += route.sent.bytes;
  }
  record.collective_bytes_per_step = collectives;
  for (int j = 0; j < record.stages; ++j) {
    const LayerSpec& first = run.model.layers[run.partition.first[j]];
    const LayerSpec& last = run.model.layers[run.partition.first[j + 1] - 1];
    record.stage_layers.push_back(fmt::format("{} .. {}", first.label(), last.label()));
    record.stage_activations.push_back(run.memory.stages[j].frame_bytes);
  }
  record.basis = run.basis;
  const Baselines baselines = activation_baselines(run.memory.stages, record.micro_batches);
  record.activation_bytes_together = baselines.together;
  record.activation_bytes_accumulate = baselines.accumulate;
  return record;
}

}  // namespace

PreparedRun prepare_run(const RunConfig& config, const Dataset& dataset, TransportKind transport) {
  PreparedRun run = prepare_run(
      config, {.sample = dataset.shape(),
               .classes = dataset.classes(),
               .train_samples = dataset.train().samples(),
               .test_samples = dataset.test().samples(),
               .real_bytes = sizeof(real),
               .staged_messages = transport != TransportKind::local && !build_info().cuda.empty()});
  if (transport != TransportKind::local) with_locations(config, [&] { check_message_sizes(run); });
  return run;
}

PreparedRun prepare_run(const RunConfig& config, const PlanBasis& basis) {
  return with_locations(config, [&] { return build(config, basis); });
}

void check_batch_norm(const RunConfig& config, const PreparedRun& run) {
  if (const LayerSpec* layer = single_values(run.model, config.train.micro_batch_size))
    fail(ExitCode::usage,
         "{}: train.micro_batch_size = 1 leaves {} a single value per channel of images of {}; use "
         "at least 2",
         where(config, "train.micro_batch_size"), layer->label(), to_string(run.model.input));
}

AdviceQuestion advice_question(const RunConfig& config, const PreparedRun& run) {
  constexpr int most_tried = 256;  // micro-batches, unless deck or machine have more
  AdviceQuestion question{
      .samples = std::int64_t{config.parallel.micro_batches} * config.train.micro_batch_size,
      .micro_batches = {},
      .optimizer_states = config.train.optimizer.momentum != 0 ? 1 : 0,
      .largest_message = INT_MAX,
      .machine = *config.machine,
      .memory = [&config, &run](int batch) { return memory_spec(config, run.basis, batch); }};
  question.machine.jitter = 0;  // which of two plans is faster should not be luck
  if (question.machine.devices == 0) question.machine.devices = run.schedule.devices();
  const std::int64_t most =
      std::min(most_parallel,
               std::max({most_tried, question.machine.devices, config.parallel.micro_batches}));
  for (std::int64_t n = 1; n <= std::min(most, question.samples); ++n) {
    if (question.samples % n != 0 || question.samples / n > most_micro_batch_size) continue;
    const auto batch = static_cast<int>(question.samples / n);
    if (too_many_pixels(run.model, batch) == nullptr && single_values(run.model, batch) == nullptr)
      question.micro_batches.push_back(batch);
  }
  return question;
}

PlanRecord plan_record(const PreparedRun& run) {
  return record_of(run, routes_of(run.schedule));
}

CheckpointSize checkpoint_size(const PreparedRun& run) {
  const bool momentum = std::ranges::any_of(run.memory.devices, [](const DeviceMemoryPlan& plan) {
    return std::ranges::any_of(plan.optimizer, [](std::int64_t offset) { return offset >= 0; });
  });
  const int copies = run.schedule.buffers(0).parameter_copies + (momentum ? 1 : 0);
  CheckpointSize size;
  const auto add = [&size](const std::vector<ParameterSpec>& tensors, int times) {
    for (const ParameterSpec& tensor : tensors) {
      size.tensors += times;
      size.bytes += times * tensor.size() * std::int64_t{sizeof(real)};
    }
  };
  for (const LayerSpec& layer : run.model.layers) {
    add(layer.parameters, copies);
    add(layer.buffers, 1);
  }
  return size;
}

std::string describe(const PreparedRun& run) {
  const ParallelConfig& parallel = run.schedule.parallel();
  const std::vector<Route> routes = routes_of(run.schedule);
  const PlanRecord plan = record_of(run, routes);
  std::string text = fmt::format(
      "{}, {}: N = {} micro-batches, S = {} stages{} on {} device{}\n\n", to_string(parallel.rule),
      to_string(parallel.placement), parallel.micro_batches, parallel.stages,
      parallel.slack > 0 ? fmt::format(", slack {}", parallel.slack) : "", plan.devices,
      plan.devices == 1 ? "" : "s");
  text += to_string(run.model) + "\n";
  text += to_string(run.partition, run.model) + "\n";
  text += draw_grid(run.schedule) + "\n";
  text += to_string(run.memory) + "\n";
  if (!routes.empty()) text += to_string(routes, run.schedule) + "\n";

  text += fmt::format("{:<20}{:<20}{:>18}\n", "activations at once", "this plan",
                      held_at_once(run.schedule, run.memory.stages));
  text +=
      fmt::format("{:<20}{:<20}{:>18}\n", "", "dp, all at once", plan.activation_bytes_together);
  text +=
      fmt::format("{:<20}{:<20}{:>18}\n", "", "dp, accumulating", plan.activation_bytes_accumulate);
  const Traffic sent = sum_of(routes);
  text +=
      fmt::format("sent per step       {} messages, {} bytes in all\n", sent.messages, sent.bytes);
  const CheckpointSize saved = checkpoint_size(run);
  text += fmt::format("checkpoint          {} bytes; device 0 makes it in {} on its host\n",
                      saved.bytes, host_bytes(saved, run.schedule));
  return text;
}

}  // namespace carousel
