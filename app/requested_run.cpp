// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/requested_run.hpp"

#include <algorithm>
#include <cctype>
#include <climits>
#include <filesystem>
#include <system_error>

#include "app/complaint.hpp"
#include "core/base/category.hpp"
#include "core/base/vectors.hpp"
#include "core/base/version.hpp"
#include "core/record/run_folder.hpp"
#include "core/train/learning_rate.hpp"

namespace carousel {
namespace {

bool uses_mpi(TransportKind transport) {
  return transport != TransportKind::local && transport != TransportKind::nccl;
}

/// Throws Error(usage) for a schedule that has no learning rate for epochs of so many samples.
void check_learning_rate(const RunConfig& config, std::int64_t samples) {
  const TrainingOrder order{samples, config.parallel.micro_batches, config.train.micro_batch_size};
  const Agenda agenda = agenda_of(config.train, config.checkpoint, order);
  static_cast<void>(learning_rate(config.train, agenda, 0));
}

/// The command that makes a data set of such a name.
std::string import_of(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (has("cifar")) return "import cifar10 ARCHIVE " + path;
  if (has("imagenet") || has("ilsvrc")) return "import imagenet FOLDER " + path + " --labels LIST";
  return "import images FOLDER " + path;
}

}  // namespace

std::string checkpoint_behind(const std::string& path) {
  if (!std::filesystem::exists(path)) fail(ExitCode::input_output, "{}: no such file", path);
  if (!std::filesystem::is_directory(path)) return path;
  std::string last = path + "/checkpoints/" + last_checkpoint;
  if (!std::filesystem::exists(last)) fail(ExitCode::input_output, "{}: no such file", last);
  const std::string best = path + "/checkpoints/" + best_checkpoint;
  if (std::filesystem::exists(best) && !std::filesystem::equivalent(best, last))
    note(fmt::format("{} is the last checkpoint; the best evaluation's is {}", last, best));
  return last;
}

VendorKernels vendor_for(const EngineConfig& engine) {
  return engine.vendor == VendorUse::none ? VendorKernels::none : built_kernels();
}

bool tells_perplexity(const RunConfig& config) {
  return config.data.kind == DataKind::tokens && config.task.loss == TaskConfig().loss;
}

std::unique_ptr<DataSet> open_data(const RunConfig& config) {
  const auto open = [&] {
    return with_locations(config, [&] { return open_data_set(config.data); });
  };
  if (config.data.kind == DataKind::arrays) return open();
  const bool images = config.data.kind == DataKind::images;
  const std::string key = images ? "data.file" : "data.tokens";
  const std::string& path = images ? config.data.file : config.data.tokens;
  std::error_code unknown;  // the file itself will tell
  if (std::filesystem::status(path, unknown).type() == std::filesystem::file_type::not_found)
    fail(ExitCode::input_output,
         "{}: {} = \"{}\": no such file; if it has moved, give {}=PATH; `carousel {}` makes one of "
         "{}",
         where(config, key), key, path, key,
         images ? import_of(path) : "import tokens TEXT " + path, images ? "pictures" : "a text");
  return open();
}

PlannedDeck planned_deck(const RunConfig& config, TransportKind transport) {
  return {.model = config.model,
          .task = config.task,
          .data = config.data,
          .parallel = config.parallel,
          .train = config.train,
          .engine = config.engine,
          .machine = config.machine,
          .rounds =
              config.transport == TransportKind::rounds || config.transport == TransportKind::nccl,
          .largest_message = uses_mpi(transport) ? INT_MAX : 0};  // counts of MPI
}

Model described_model(const RunConfig& config, const DataSet& dataset) {
  return with_locations(config, [&] {
    return build_model(config.model, dataset.source_spec(config.data).shown,
                       dataset.target(config.data), config.task);
  });
}

PreparedRun prepare_run(const RunConfig& config, const DataSet& dataset, TransportKind transport) {
  const bool accelerated = !build_info().cuda.empty();
  return with_locations(config, [&] {
    const PlanBasis basis{
        .source = dataset.source_spec(config.data),
        .target = dataset.target(config.data),
        .train_samples = dataset.samples(Pass::training),
        .test_samples = dataset.samples(Pass::evaluation),
        .real_bytes = sizeof(real),
        .block = vector_block,
        .staged_messages = accelerated && uses_mpi(transport) && !config.gpu_aware,
        .vendor = vendor_for(config.engine),
        .token_bytes = transport == TransportKind::nccl ? token_bytes : 0,
        .copies_input = accelerated};
    PreparedRun run = prepare_run(planned_deck(config, transport), basis);
    check_learning_rate(config, basis.train_samples);
    return run;
  });
}

PreparedRun prepare_run(const RunConfig& config, const PlanBasis& basis) {
  // Whether messages are too large for MPI matters to who sends them.
  return with_locations(
      config, [&] { return prepare_run(planned_deck(config, TransportKind::local), basis); });
}

CheckpointLayout checkpoint_layout(const RunConfig& config, const PreparedRun& run) {
  return {run.model, run.schedule.rule().cyclic(), run.schedule.parallel().predict > 0,
          config.train.optimizer.states()};
}

void check_batch_norm(const RunConfig& config, const PreparedRun& run) {
  with_locations(config,
                 [&] { check_batch_norm(planned_deck(config, TransportKind::local), run); });
}

}  // namespace carousel
