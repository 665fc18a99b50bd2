// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/prepare/prepare.hpp"

#include <algorithm>
#include <climits>

#include "core/base/check.hpp"
#include "core/base/real.hpp"
#include "core/data/prefetcher.hpp"
#include "core/data/sampler.hpp"
#include "core/model/freeze.hpp"
#include "core/plan/costs.hpp"
#include "core/proof/checker.hpp"

namespace carousel {
namespace {

/// Kernels count the pixels of a micro-batch in int; the first layer that has more.
const LayerSpec* too_many_pixels(const Model& model, int batch) {
  for (const LayerSpec& layer : model.layers) {
    const SampleShape& largest =
        layer.input().size() > layer.output.size() ? layer.input() : layer.output;
    if (batch * largest.pixels() > INT_MAX) return &layer;
  }
  return nullptr;
}

/// The first layer whose batch norm has a single value per channel.
const LayerSpec* single_values(const Model& model, int batch) {
  for (const LayerSpec& layer : model.layers) {
    const bool single = batch * layer.input().pixels() == 1;
    if (layer.normalises_samples && single) return &layer;
  }
  return nullptr;
}

/// Devices show a model images of uint8, or numbers as they are.
void check_source(const PlanBasis& basis) {
  const SourceSpec& source = basis.source;
  const NumberType full = full_numbers(basis.real_bytes);
  const bool shows = source.is_shown_as_read()
                         ? source.input == TensorSpec{full, source.shown}
                         : source.input.shape.channels == source.shown.channels;
  if (!shows || source.target != tensor_of(basis.target, basis.real_bytes))
    fail(ExitCode::usage,
         "data.file has inputs of {} and targets of {}; models read images of uint8 or {} as they "
         "are, and the loss compares with {}",
         to_string(source.input), to_string(source.target), to_string(full),
         to_string(tensor_of(basis.target, basis.real_bytes)));
}

MemorySpec memory_spec(const PlannedDeck& deck, const PlanBasis& basis, int batch) {
  const StagingBytes staging = Prefetcher::planned_bytes(basis.source, basis.train_samples, batch,
                                                         staged_batches, deck.data.workers);
  const std::int64_t everywhere = basis.targets_everywhere ? staging.targets : 0;
  return {.input = basis.source.shown,
          .shows_images = !basis.source.is_shown_as_read(),
          .read_bytes = basis.copies_input && !basis.source.is_shown_as_read()
                            ? basis.source.input.bytes()
                            : 0,
          .target_bytes = basis.source.target.bytes(),
          .micro_batch_size = batch,
          .optimizer = deck.train.optimizer,
          .evaluation_batches = (basis.test_samples + batch - 1) / batch,
          .staging_bytes = staging.samples + everywhere,
          .input_staging_bytes = staging.inputs,
          .target_staging_bytes = staging.targets - everywhere,
          .staged_messages = basis.staged_messages,
          .token_bytes = basis.token_bytes,
          .compute_queues = std::min(deck.engine.queues, deck.parallel.micro_batches)};
}

void check_message_sizes(const PreparedRun& run, std::int64_t largest) {
  if (largest == 0 || run.schedule.devices() == 1) return;
  for (int j = 0; j < run.schedule.rule().stages(); ++j) {
    const std::int64_t bytes = run.schedule.message_bytes(j);
    if (bytes > largest)
      fail(ExitCode::usage,
           "parallel.stages = {} makes stage {} of {} bytes, and a message of MPI holds {}; use "
           "more stages, or balance = \"parameters\"",
           run.schedule.rule().stages(), j, bytes, largest);
  }
  if (run.memory.largest_message > largest)
    fail(ExitCode::usage,
         "parallel.reduction = \"{}\" makes a message of {} bytes, and a message of MPI holds {}; "
         "use \"ordered\" or more stages",
         to_string(run.schedule.parallel().reduction), run.memory.largest_message, largest);
}

}  // namespace

Model prepare_model(const PlannedDeck& deck, const PlanBasis& basis) {
  Model model = build_model(deck.model, basis.source.shown, basis.target, deck.task);
  freeze(model, deck.train.freeze);
  return choose_kernels(model, {basis.block, deck.engine.winograd, deck.engine.recompute,
                                deck.engine.precision, basis.vendor, deck.engine.products});
}

PreparedRun prepare_run(const PlannedDeck& deck, const PlanBasis& basis) {
  check_source(basis);
  const int batch = deck.train.micro_batch_size;
  Model model = prepare_model(deck, basis);
  if (const LayerSpec* layer = too_many_pixels(model, batch))
    fail(ExitCode::usage,
         "train.micro_batch_size = {} gives {} more than {} pixels; use a smaller one and more "
         "micro-batches",
         batch, layer->label(), INT_MAX);
  Partition partition = cut_model(model, deck.parallel, batch, deck.machine);
  std::vector<StageMemory> stages =
      cut_stages(deck.parallel, plan_stages(model, partition, batch, basis.rider_parts));

  ScheduleSpec spec = schedule_spec(deck.parallel, stages, deck.train.optimizer.clipping());
  spec.rounds = deck.rounds;
  Schedule schedule(spec);
  check_schedule(schedule);

  // Throws when there is not a single training step in the data.
  const TrainingOrder order{basis.train_samples, deck.parallel.micro_batches, batch};
  static_cast<void>(order.steps_per_epoch());
  MemoryPlan plan = plan_memory(memory_spec(deck, basis, batch), std::move(stages), schedule);
  PreparedRun run{basis, std::move(model), std::move(partition), std::move(schedule),
                  std::move(plan)};
  check_message_sizes(run, deck.largest_message);
  return run;
}

void check_batch_norm(const PlannedDeck& deck, const PreparedRun& run) {
  if (const LayerSpec* layer = single_values(run.model, deck.train.micro_batch_size))
    fail(ExitCode::usage,
         "train.micro_batch_size = 1 leaves {} a single value per channel of images of {}; use at "
         "least 2",
         layer->label(), to_string(run.model.input));
}

AdviceQuestion advice_question(const PlannedDeck& deck, const PreparedRun& run) {
  constexpr int most_tried = 256;  // micro-batches, unless deck or machine have more
  AdviceQuestion question{
      .samples = std::int64_t{deck.parallel.micro_batches} * deck.train.micro_batch_size,
      .micro_batches = {},
      .passes = deck.parallel.passes,
      .predict = deck.parallel.predict,
      .optimizer = deck.train.optimizer,
      .largest_message = deck.largest_message == 0 ? INT64_MAX : deck.largest_message,
      .machine = *deck.machine,
      .memory = [deck, &run](int batch) { return memory_spec(deck, run.basis, batch); }};
  question.machine.jitter = 0;  // which of two plans is faster should not be luck
  if (question.machine.devices == 0) question.machine.devices = run.schedule.devices();
  const std::int64_t most = std::min(
      most_parallel, std::max({most_tried, question.machine.devices, deck.parallel.micro_batches}));
  for (std::int64_t n = 1; n <= std::min(most, question.samples); ++n) {
    if (question.samples % n != 0 || question.samples / n > most_micro_batch_size) continue;
    const auto batch = static_cast<int>(question.samples / n);
    if (too_many_pixels(run.model, batch) == nullptr && single_values(run.model, batch) == nullptr)
      question.micro_batches.push_back(batch);
  }
  return question;
}

}  // namespace carousel
