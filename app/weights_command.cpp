// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Weights in and out: between files with PyTorch's names and checkpoints. No engine is needed.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "app/commands.hpp"
#include "app/complaint.hpp"
#include "app/dropped_keys.hpp"
#include "app/input_rules.hpp"
#include "app/output_rules.hpp"
#include "app/provenance.hpp"
#include "app/requested_run.hpp"
#include "core/state/checkpoint.hpp"
#include "core/state/weights.hpp"
#include "core/train/initialise.hpp"

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
    if (config.parallel.predict > 0) checkpoint.put("/predicted/" + spec.name, 0, values);
    const std::vector<real> zeros(values.size(), 0);
    for (const std::string& state : config.train.optimizer.states())
      checkpoint.put(optimizer_group(state) + spec.name, 0, zeros);
  }
}

/// The checkpoint is what the deck's training would start with, so that train.new_head means the
/// same here as there.
std::vector<std::string> overrides_of(const ImportArguments& arguments) {
  std::vector<std::string> overrides = arguments.overrides;
  const std::string start = "train.start=";
  if (std::ranges::none_of(overrides, [&](auto& text) { return text.starts_with(start); }))
    overrides.push_back(start + to_toml(DeckValue{arguments.checkpoint}));
  return overrides;
}

/// What the deck of the checkpoint says no more, since it is done.
void forget_start(RunConfig& config) {
  config.train.start.clear();
  config.train.new_head = false;
  config.deck.remove("train.start");
  config.deck.add("train.new_head");
}

/// Adds those tensors of a model with the first values that a training gives them.
void add_first_values(std::vector<Weight>& weights, const Model& model,
                      const std::set<std::string>& names, std::uint64_t seed) {
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& tensor : layer.parameters) {
      if (!names.contains(tensor.name)) continue;
      std::vector<real> values(static_cast<std::size_t>(tensor.size()));
      initialise(tensor, seed, values);
      weights.push_back({tensor, std::move(values)});
    }
  }
}

}  // namespace

void import_weights_command(const ImportArguments& arguments, const Launcher& launcher) {
  const std::vector<std::string> overrides = overrides_of(arguments);
  say_what_is_dropped(arguments.deck, overrides, "", launcher);
  RunConfig config = load_run_config(arguments.deck, overrides);
  check_output(arguments.checkpoint, arguments.overwrite, launcher,
               std::array<ReadFile, 3>{{{"the file of the weights", arguments.weights},
                                        {"the deck", arguments.deck},
                                        {"data.file of the deck", config.data.file}}});
  const std::unique_ptr<DataSet> dataset = open_data(config);
  const PreparedRun run = prepare_run(config, *dataset, config.transport);
  const bool new_head = config.train.new_head;
  forget_start(config);
  const std::set<std::string> head = new_head ? head_of(run.model) : std::set<std::string>();
  Weights weights = read_weights(arguments.weights, run.model, head);
  if (weights.inputs) {
    for (const std::string& remark :
         begin_with_weights(config, *dataset, weights.inputs, arguments.weights, new_head))
      note(remark);
  }
  const std::size_t taken = weights.tensors.size();
  add_first_values(weights.tensors, run.model, head, config.run.seed);

  CheckpointWriter checkpoint(arguments.checkpoint, checkpoint_layout(config, run));
  checkpoint.begin();
  put_first(checkpoint, config, weights.tensors);
  checkpoint.sync();
  checkpoint.finish(provenance(config),
                    {.micro_batches = config.parallel.micro_batches,
                     .micro_batch_size = config.train.micro_batch_size},
                    inputs_of(config, *dataset));
  const std::string anew =
      head.empty() ? "" : fmt::format(" and first values of {}", fmt::join(head, ", "));
  fmt::print("{}: {} with {} tensors of {}{}, before the first step\n", arguments.checkpoint,
             run.model.name, taken, arguments.weights, anew);
}

void export_weights_command(const ExportArguments& arguments, const Launcher& launcher) {
  check_output(arguments.weights, arguments.overwrite, launcher,
               std::array<ReadFile, 1>{{{"the checkpoint", arguments.checkpoint}}});
  const Checkpoint checkpoint(arguments.checkpoint);
  write_weights(arguments.weights, checkpoint);
  fmt::print("{}: parameters and buffers of {} after {} steps\n", arguments.weights,
             arguments.checkpoint, checkpoint.place().step);
}

}  // namespace carousel
