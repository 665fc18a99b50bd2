// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/schema.hpp"

#include <algorithm>
#include <utility>

namespace carousel {
namespace {

/// A table whose rows fill the struct that `at` finds; none of them may change less than `bond`
/// says.
template <class Struct, class At>
TableSpec table(const char* name, const char* doc, const std::vector<Row<Struct>>& rows, At at,
                Bond bond = Bond::free) {
  TableSpec table{.name = name, .doc = doc};
  for (Row<RunConfig>& row : rows_at<RunConfig>(rows, at)) {
    row.traits.bond = std::max(row.traits.bond, bond);
    table.keys.push_back({std::move(row), name});
  }
  return table;
}

std::vector<TableSpec> make_tables() {
  std::vector<TableSpec> tables = {
      table(
          "run", "name and folder of the run", RunTable::rows(),
          [](auto& config) -> auto& { return config.run; }),
      table(
          "model", "the network", ModelConfig::rows(),
          [](auto& config) -> auto& { return config.model; }, Bond::fixed),
      table(
          "task", "what the network is trained for", TaskConfig::rows(),
          [](auto& config) -> auto& { return config.task; }),
      table(
          "data", "the data set", DataConfig::rows(),
          [](auto& config) -> auto& { return config.data; }),
      table(
          "data.input", "arrays that the model reads", InputConfig::rows(),
          [](auto& config) -> auto& { return config.data.input; }),
      table(
          "data.target", "arrays that the model learns to give", TargetConfig::rows(),
          [](auto& config) -> auto& { return config.data.target; }),
      table(
          "data.augment", "what the model sees of pictures and fields", AugmentConfig::rows(),
          [](auto& config) -> auto& { return config.data.augment; }, Bond::fixed),
      table(
          "parallel", "how a training step is spread over devices and time", ParallelConfig::rows(),
          [](auto& config) -> auto& { return config.parallel; }),
      table(
          "train", "length of the training and size of its micro-batches", TrainConfig::rows(),
          [](auto& config) -> auto& { return config.train; }),
      table(
          "train.optimizer", "how gradients change the parameters", OptimizerConfig::rows(),
          [](auto& config) -> auto& { return config.train.optimizer; }, Bond::numbers),
      table(
          "train.schedule", "how the learning rate changes", LearningRateConfig::rows(),
          [](auto& config) -> auto& { return config.train.schedule; }, Bond::numbers),
      table(
          "engine", "how the kernels run", EngineConfig::rows(),
          [](auto& config) -> auto& { return config.engine; }),
      table(
          "checkpoint", "how often checkpoints are written, and how many stay",
          CheckpointConfig::rows(), [](auto& config) -> auto& { return config.checkpoint; }),
      table(
          "profile", "what a run records beyond its losses", ProfileConfig::rows(),
          [](auto& config) -> auto& { return config.profile; }),
      table(
          "machine", "optional: the cluster whose step times plan predicts", Machine::rows(),
          [](auto& config) -> auto& { return *config.machine; })};
  tables.back().optional = true;
  const auto parallel = std::ranges::find(tables, std::string("parallel"), &TableSpec::name);
  for (const Row<RunConfig>& row : RunConfig::transport_rows())
    parallel->keys.push_back({row, parallel->name});
  return tables;
}

RunConfig standard_config() {
  RunConfig config;
  config.machine.emplace();
  return config;
}

}  // namespace

const std::vector<TableSpec>& deck_tables() {
  static const std::vector<TableSpec> tables = make_tables();
  return tables;
}

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (const TableSpec& table : deck_tables()) names.push_back(table.name);
  return names;
}

std::vector<std::string> key_names() {
  std::vector<std::string> names;
  for (const TableSpec& table : deck_tables())
    for (const KeySpec& spec : table.keys) names.push_back(spec.key());
  return names;
}

const KeySpec* find_key(std::string_view key) {
  for (const TableSpec& table : deck_tables())
    for (const KeySpec& spec : table.keys)
      if (spec.key() == key) return &spec;
  return nullptr;
}

std::string present_name(const std::string& key) {
  for (const TableSpec& table : deck_tables())
    for (const KeySpec& spec : table.keys)
      if (spec.traits.former == key) return spec.key();
  return key;
}

DeckValue standard_value(const KeySpec& spec) {
  static const RunConfig standard = standard_config();
  return spec.standard(standard);
}

}  // namespace carousel
