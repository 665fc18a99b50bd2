// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/input_rules.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "app/schema.hpp"
#include "core/state/weights.hpp"

namespace carousel {
namespace {

/// A key of statistics, the data that it is of, and what a record has for it.
struct Statistic {
  const char* key;
  DataKind of;
  std::vector<double> InputRecord::*known;
};
constexpr std::array statistics = {
    Statistic{"data.augment.mean", DataKind::images, &InputRecord::mean},
    Statistic{"data.augment.std", DataKind::images, &InputRecord::std},
    Statistic{"data.input.mean", DataKind::arrays, &InputRecord::mean},
    Statistic{"data.input.std", DataKind::arrays, &InputRecord::std},
    Statistic{"data.target.mean", DataKind::arrays, &InputRecord::target_mean},
    Statistic{"data.target.std", DataKind::arrays, &InputRecord::target_std}};

InputRecord record_of(const RunConfig& config, const DataSet& dataset,
                      const DataStatistics& taken) {
  const AugmentConfig& augment = config.data.augment;
  return {.mean = taken.mean,
          .std = taken.std,
          .class_names = dataset.class_names(),
          .shape = dataset.source_spec(config.data).shown,
          .resize = augment.resize > 0 ? augment.resize : augment.size,
          .target = dataset.target(config.data),
          .target_mean = taken.target_mean,
          .target_std = taken.target_std};
}

}  // namespace

InputRecord inputs_of(const RunConfig& config, const DataSet& dataset) {
  return with_locations(
      config, [&] { return record_of(config, dataset, dataset.statistics(config.data)); });
}

InputRecord planned_inputs(const RunConfig& config, const DataSet& dataset) {
  return with_locations(
      config, [&] { return record_of(config, dataset, dataset.count_of_statistics(config.data)); });
}

bool is_statistic(std::string_view key) {
  return std::ranges::any_of(statistics, [&](const Statistic& each) { return key == each.key; });
}

std::string untold_inputs(const std::string& checkpoint, const std::string& dataset) {
  return fmt::format(
      "{} does not tell mean, std and classes that it was trained with; those of {} are taken",
      checkpoint, dataset);
}

void check_inputs(const InputRecord& inputs, const Checkpoint& checkpoint,
                  const std::string& subject, const std::string& advice,
                  const std::string& on_statistics) {
  if (!checkpoint.inputs()) return;
  if (const auto found = difference(inputs, *checkpoint.inputs()))
    fail(ExitCode::usage, "{}: {} is {}, and {} was trained with {}; {}", subject, found->what,
         found->first, checkpoint.path(), found->second,
         found->is_statistic && !on_statistics.empty() ? on_statistics : advice);
}

void take_statistics(RunConfig& config, const InputRecord& known, const std::string& origin) {
  for (const auto& [key, kind, of_weights] : statistics) {
    if (config.data.kind != kind || config.deck.given(key) || (known.*of_weights).empty()) continue;
    DeckValue::List values;
    for (const double value : known.*of_weights) values.push_back({value});
    find_key(key)->write(config, {std::move(values)});
    config.deck.add(key, Location{.file = origin, .line = 0, .column = 0});
  }
}

void keep_statistics(RunConfig& config, const Checkpoint& checkpoint) {
  const bool kept = !config.train.start.empty() || config.data.kind == DataKind::arrays;
  if (!kept || !checkpoint.inputs()) return;
  take_statistics(config, *checkpoint.inputs(), checkpoint.path());
}

std::set<std::string> begun_anew(const RunConfig& config, const Model& model) {
  try {
    return begun_anew(model, config.train.new_head, config.train.start_only);
  } catch (const Error& error) {
    fail(ExitCode::usage, "{}: train.start_only: {}", where(config, "train.start_only"),
         error.what());
  }
}

std::vector<std::string> begin_with_weights(RunConfig& config, const DataSet& dataset,
                                            const std::optional<InputRecord>& known,
                                            const std::string& path, const Model& model) {
  if (!known) return {untold_inputs(path, dataset.name())};
  const InputRecord before = inputs_of(config, dataset);
  if (const auto found = class_difference(*known, before);
      found && !has_head(begun_anew(config, model), model))
    fail(ExitCode::usage,
         "{}: {} is {}, and in {} it is {}; train.new_head = true learns other classes, with a new "
         "last layer",
         path, found->what, found->first, dataset.name(), found->second);
  if (known->mean.size() != before.mean.size())
    fail(ExitCode::usage, "{}: was trained on images of {} channels, and those of {} have {}", path,
         known->mean.size(), dataset.name(), before.mean.size());
  take_statistics(config, *known, path);
  const InputRecord now = inputs_of(config, dataset);
  std::vector<std::string> remarks;
  for (const auto& [key, kind, of_weights] : statistics) {
    if (config.data.kind != kind) continue;
    const std::string taken = to_string(now.*of_weights);
    if (!same_statistics(now.*of_weights, (*known).*of_weights))
      remarks.push_back(fmt::format("{}: {} = {} is of the deck; {} was trained with {}",
                                    where(config, key), key, taken, path,
                                    to_string((*known).*of_weights)));
    else if (!same_statistics(now.*of_weights, before.*of_weights))
      remarks.push_back(fmt::format("{} = {} is that of {}; that of {} is {}", key, taken, path,
                                    dataset.name(), to_string(before.*of_weights)));
  }
  return remarks;
}

}  // namespace carousel
