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

void check_output(const std::string& path, bool overwrite, const Launcher& launcher) {
  if (launcher.size > 1)
    fail(ExitCode::usage, "import and export run in one process; start them without a launcher");
  if (!overwrite && std::filesystem::exists(path))
    fail(ExitCode::usage, "{}: already exists; give --overwrite to replace it", path);
}

/// What a checkpoint holds before the first update: theta_{-1} = theta_0, and nothing has moved
/// yet.
std::vector<NamedTensor> first_checkpoint(const RunConfig& config,
                                          const std::vector<Weight>& weights,
                                          const std::vector<real>& zeros) {
  std::vector<NamedTensor> tensors;
  for (const auto& [spec, values] : weights) {
    if (!spec.learned) {
      tensors.push_back({"/buffers/" + spec.name, spec.shape, values});
      continue;
    }
    tensors.push_back({"/parameters/" + spec.name, spec.shape, values});
    if (config.parallel.rule != RuleKind::dp)
      tensors.push_back({"/previous/" + spec.name, spec.shape, values});
    for (const std::string& state : optimizer_states(config.train.optimizer))
      tensors.push_back({optimizer_group(state) + spec.name, spec.shape,
                         std::span<const real>(zeros).first(values.size())});
  }
  return tensors;
}

}  // namespace

void import_weights_command(const ImportArguments& arguments, const Launcher& launcher) {
  check_output(arguments.checkpoint, arguments.overwrite, launcher);
  const RunConfig config = load_run_config(arguments.deck, arguments.overrides);
  const Dataset dataset(config.data_file);
  const PreparedRun run = prepare_run(config, dataset, config.transport);
  const std::vector<Weight> weights = read_weights(arguments.weights, run.model);

  std::size_t largest = 0;
  for (const Weight& weight : weights) largest = std::max(largest, weight.values.size());
  const std::vector<real> zeros(largest, 0);
  CheckpointWriter checkpoint(provenance(config),
                              {.micro_batches = config.parallel.micro_batches,
                               .micro_batch_size = config.train.micro_batch_size},
                              checkpoint_size(run.model, saved_copies(run)));
  for (const NamedTensor& tensor : first_checkpoint(config, weights, zeros)) checkpoint.add(tensor);
  checkpoint.write(arguments.checkpoint);
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
