// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/task.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/check.hpp"
#include "core/deck/kinds.hpp"
#include "core/model/op.hpp"

namespace carousel {
namespace {

std::vector<const Op*> all_losses() {
  std::vector<const Op*> losses;
  for (const Op& op : all_ops())
    if (op.loss) losses.push_back(&op);
  return losses;
}

std::vector<LossFacts> all_facts() {
  std::vector<LossFacts> facts;
  for (const Op* loss : all_losses()) facts.push_back(*loss->loss);
  return facts;
}

/// Of all that have one.
template <class Range>
std::vector<std::string> names_in(const Range& all) {
  std::vector<std::string> names;
  for (const auto& named : all) names.emplace_back(named.name);
  return names;
}

const ArgumentSpec* argument_of(const Op& loss, const std::string& name) {
  const auto found = std::ranges::find(loss.arguments, name, &ArgumentSpec::name);
  return found == loss.arguments.end() ? nullptr : &*found;
}

DeckValue deck_value_of(const ArgumentSpec& spec, double value) {
  if (spec.whole) return {static_cast<std::int64_t>(value)};
  return {value};
}

/// The row of an argument that one loss has, or several.
Row<TaskConfig> argument_row(const Op& first, const ArgumentSpec& spec) {
  const std::string name = spec.name;
  const auto spec_of = [name, &spec](const TaskConfig& task) -> const ArgumentSpec& {
    const ArgumentSpec* own = argument_of(loss_named(task.loss), name);
    return own == nullptr ? spec : *own;  // of a loss without it; nobody shows it
  };
  const auto standard = [spec_of](const TaskConfig& task) {
    const ArgumentSpec& own = spec_of(task);
    return deck_value_of(own, own.otherwise.value_or(own.least));
  };
  Row<TaskConfig> row;
  row.name = name;
  row.type = spec.whole ? KeyType::integer : KeyType::number;
  row.allowed = within(spec.least, spec.most);
  row.doc = spec.doc;
  row.traits =
      bound(Bond::numbers, only_with("task.loss", {first.loss->name},
                                     spec.otherwise ? Missing::standard : Missing::refused));
  row.traits.former = spec.former;
  row.read = [spec_of, standard, name](const TaskConfig& task) {
    const auto given = std::ranges::find(task.arguments, name, &Argument::name);
    return given == task.arguments.end() ? standard(task)
                                         : deck_value_of(spec_of(task), given->value);
  };
  row.write = [name](TaskConfig& task, const DeckValue& value) {
    std::erase_if(task.arguments, [&](const Argument& given) { return given.name == name; });
    if (argument_of(loss_named(task.loss), name) == nullptr) return;
    const auto* whole = std::get_if<std::int64_t>(&value.data);
    task.arguments.push_back(
        {name, whole == nullptr ? std::get<double>(value.data) : static_cast<double>(*whole)});
  };
  row.standard = standard;
  return row;
}

/// The rows of all losses; what several have under one name is one row.
std::vector<Row<TaskConfig>> argument_rows() {
  std::vector<Row<TaskConfig>> rows;
  for (const Op* loss : all_losses()) {
    for (const ArgumentSpec& spec : loss->arguments) {
      const Row<TaskConfig> own = argument_row(*loss, spec);
      const auto known = std::ranges::find(rows, own.name, &Row<TaskConfig>::name);
      if (known == rows.end())
        rows.push_back(own);
      else
        join_kind(*known, known->standard({known->traits.only_with.front().values.front()}), own,
                  own.standard({loss->loss->name}), loss->loss->name);
    }
  }
  return rows;
}

std::string metric_docs() {
  std::vector<std::string> own;
  for (const LossFacts& loss : all_facts())
    own.push_back(fmt::format("{} for {}", fmt::join(loss.metrics, " and "), loss.name));
  return fmt::format(
      "What is reported besides the loss. The first one says which evaluation is the best.{} "
      "Without the key: {}.",
      docs_of(all_metrics()), fmt::join(own, ", "));
}

}  // namespace

std::vector<Row<TaskConfig>> TaskConfig::rows() {
  KeyTraits choosing = bound(Bond::fixed);
  choosing.chooses = true;
  std::vector<std::string> weighted;
  for (const LossFacts& loss : all_facts())
    if (loss.takes_weights) weighted.emplace_back(loss.name);
  std::vector<Row<TaskConfig>> rows = {
      key("loss", &TaskConfig::loss, one_of(names_in(all_facts())),
          "What training makes small." + docs_of(all_facts()), choosing),
      key("metrics", &TaskConfig::metrics, one_of(names_in(all_metrics())), metric_docs(),
          bound(Bond::fixed, optional_key)),
      key("weights", &TaskConfig::weights, at_least(0),
          "What each class counts for in the loss, as PyTorch's CrossEntropyLoss(weight): the mean "
          "is divided by the weights of the labels. Metrics count all labels alike.",
          bound(Bond::numbers, only_with("task.loss", weighted, Missing::nothing))),
  };
  for (Row<TaskConfig>& row : argument_rows()) rows.push_back(std::move(row));
  return rows;
}

void TaskConfig::check() const {
  for (auto name = metrics.begin(); name != metrics.end(); ++name)
    if (std::find(metrics.begin(), name, *name) != name)
      fail(ExitCode::usage, "task.metrics has {} twice", *name);
  if (!weights.empty() && *std::ranges::max_element(weights) <= 0)
    fail(ExitCode::usage, "task.weights are all 0; nothing would be learned");
  if (weights.size() > most_weights)
    fail(ExitCode::usage, "task.weights are of {} classes, and may be of {} at most",
         weights.size(), most_weights);
}

const Op& loss_named(std::string_view name) {
  for (const Op& op : all_ops())
    if (op.loss && name == op.loss->name) return op;
  fail(ExitCode::usage, "there is no loss {}", name);
}

std::string losses_for(TargetKind kind) {
  std::vector<std::string> names;
  for (const LossFacts& loss : all_facts())
    if (loss.takes(kind)) names.emplace_back(loss.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<const Metric*> metrics_of(const TaskConfig& task, const TargetSpec& target) {
  std::vector<const Metric*> metrics;
  if (task.metrics.empty() && target.has_labels())
    for (const char* name : loss_named(task.loss).loss->metrics)
      metrics.push_back(&metric_named(name));
  for (const std::string& name : task.metrics) metrics.push_back(&metric_named(name));
  return metrics;
}

}  // namespace carousel
