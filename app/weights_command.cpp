// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Weights in and out: between files with PyTorch's names and checkpoints. No engine is needed.

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "app/commands.hpp"
#include "app/provenance.hpp"
#include "app/requested_run.hpp"
#include "core/state/checkpoint.hpp"
#include "core/state/weights.hpp"

namespace carousel {
namespace {

/// Writes what a checkpoint holds before the first update: theta_{-1} = theta_0, and nothing has
/// moved yet.
void put_first(CheckpointWriter& checkpoint, const RunConfig& config,
               const std::vector<Weight>& weights) {
  for (const auto& [spec, values] : weights) {
    if (!spec.learned) {
      checkpoint.put("/buffers/" + spec.name, 0, values);
      continue;
    }
    checkpoint.put("/parameters/" + spec.name, 0, values);
    if (config.parallel.rule != RuleKind::dp) checkpoint.put("/previous/" + spec.name, 0, values);
    const std::vector<real> zeros(values.size(), 0);
    for (const std::string& state : optimizer_states(config.train.optimizer))
      checkpoint.put(optimizer_group(state) + spec.name, 0, zeros);
  }
}

}  // namespace

void check_output(const std::string& path, bool overwrite, const Launcher& launcher) {
  if (launcher.size > 1)
    fail(ExitCode::usage, "import and export run in one process; start them without a launcher");
  if (!overwrite && std::filesystem::exists(path))
    fail(ExitCode::usage, "{}: already exists; give --overwrite to replace it", path);
}

void import_weights_command(const ImportArguments& arguments, const Launcher& launcher) {
  check_output(arguments.checkpoint, arguments.overwrite, launcher);
  const RunConfig config = load_run_config(arguments.deck, arguments.overrides);
  const Dataset dataset(config.data.file);
  const PreparedRun run = prepare_run(config, dataset, config.transport);
  const std::vector<Weight> weights = read_weights(arguments.weights, run.model);

  CheckpointWriter checkpoint(arguments.checkpoint, checkpoint_layout(config, run));
  checkpoint.begin();
  put_first(checkpoint, config, weights);
  checkpoint.sync();
  checkpoint.finish(provenance(config), {.micro_batches = config.parallel.micro_batches,
                                         .micro_batch_size = config.train.micro_batch_size});
  fmt::print("{}: {} with {} tensors of {}, before the first step\n", arguments.checkpoint,
             run.model.name, weights.size(), arguments.weights);
}

void export_weights_command(const ExportArguments& arguments, const Launcher& launcher) {
  check_output(arguments.weights, arguments.overwrite, launcher);
  const Checkpoint checkpoint(arguments.checkpoint);
  write_weights(arguments.weights, checkpoint);
  fmt::print("{}: parameters and buffers of {} after {} steps\n", arguments.weights,
             arguments.checkpoint, checkpoint.place().step);
}

}  // namespace carousel
