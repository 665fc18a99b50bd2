// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Weights in and out: between files with PyTorch's names and checkpoints. No engine is needed.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
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
    if (spec.frozen) continue;
    if (config.parallel.rule != RuleKind::dp) checkpoint.put("/previous/" + spec.name, 0, values);
    if (config.parallel.predict > 0) checkpoint.put("/predicted/" + spec.name, 0, values);
    const std::vector<real> zeros(values.size(), 0);
    for (const std::string& state : config.train.optimizer.states())
      checkpoint.put(optimizer_group(state) + spec.name, 0,
                     state == average_state ? values : zeros);
  }
}

/// The checkpoint is what the deck's training would start with, so that train.new_head and
/// train.start_only mean the same here as there.
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
  config.train.start_only.clear();
  config.deck.remove("train.start");
  config.deck.add("train.new_head");
  config.deck.remove("train.start_only");
}

/// Adds those tensors of a model with the first values that a training gives them.
void add_first_values(std::vector<Weight>& weights, const Model& model,
                      const std::set<std::string>& names, std::uint64_t seed) {
  for (ParameterSpec& tensor : tensors_of(model)) {
    if (!names.contains(tensor.name)) continue;
    std::vector<real> values(static_cast<std::size_t>(tensor.size()));
    initialise(tensor, seed, values);
    weights.push_back({std::move(tensor), std::move(values)});
  }
}

/// The tensors that begin anew, of many the first ones.
std::string told(const std::set<std::string>& anew) {
  constexpr std::size_t most = 4;
  if (anew.empty()) return "";
  const auto shown = std::min(most, anew.size());
  const auto end = std::next(anew.begin(), static_cast<std::ptrdiff_t>(shown));
  return fmt::format(" and first values of {}{}", fmt::join(anew.begin(), end, ", "),
                     anew.size() > shown ? fmt::format(" and {} more", anew.size() - shown) : "");
}

}  // namespace

void import_weights_command(const ImportArguments& arguments, const Launcher& launcher) {
  const std::vector<std::string> overrides = overrides_of(arguments);
  say_what_is_dropped(arguments.deck, overrides, "", launcher);
  RunConfig config = load_run_config(arguments.deck, overrides);
  check_output(arguments.checkpoint, arguments.overwrite, launcher,
               std::array<ReadFile, 4>{{{"the file of the weights", arguments.weights},
                                        {"the deck", arguments.deck},
                                        {"data.file of the deck", config.data.file},
                                        {"data.tokens of the deck", config.data.tokens}}});
  const std::unique_ptr<DataSet> dataset = open_data(config);
  const PreparedRun run = prepare_run(config, *dataset, config.transport);
  const std::set<std::string> anew = begun_anew(config, run.model);
  Weights weights =
      read_weights(arguments.weights, run.model, anew, !config.train.start_only.empty());
  if (weights.inputs) {
    for (const std::string& remark :
         begin_with_weights(config, *dataset, weights.inputs, arguments.weights, run.model))
      note(remark);
  }
  forget_start(config);
  const std::size_t taken = weights.tensors.size();
  add_first_values(weights.tensors, run.model, anew, config.run.seed);

  CheckpointWriter checkpoint(arguments.checkpoint, checkpoint_layout(config, run));
  checkpoint.begin();
  put_first(checkpoint, config, weights.tensors);
  checkpoint.sync();
  checkpoint.finish(provenance(config),
                    {.micro_batches = config.parallel.micro_batches,
                     .micro_batch_size = config.train.micro_batch_size},
                    inputs_of(config, *dataset));
  fmt::print("{}: {} with {} tensors of {}{}, before the first step\n", arguments.checkpoint,
             run.model.name, taken, arguments.weights, told(anew));
}

void export_weights_command(const ExportArguments& arguments, const Launcher& launcher) {
  const std::string path = checkpoint_behind(arguments.checkpoint);
  check_output(arguments.weights, arguments.overwrite, launcher,
               std::array<ReadFile, 1>{{{"the checkpoint", path}}});
  const Checkpoint checkpoint(path);
  write_weights(arguments.weights, checkpoint, arguments.without_ema);
  fmt::print("{}: {} and buffers of {} after {} steps\n", arguments.weights,
             checkpoint.used_parameters(arguments.without_ema), path, checkpoint.place().step);
}

}  // namespace carousel
