// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/input_rules.hpp"

#include <array>

#include "core/data/image_source.hpp"

namespace carousel {
namespace {

/// The keys of statistics with what the deck says and what a record has.
struct Statistic {
  const char* key;
  std::vector<double> AugmentConfig::*given;
  std::vector<double> InputRecord::*known;
};
constexpr std::array statistics = {
    Statistic{"data.augment.mean", &AugmentConfig::mean, &InputRecord::mean},
    Statistic{"data.augment.std", &AugmentConfig::std, &InputRecord::std}};

}  // namespace

InputRecord inputs_of(const RunConfig& config, const Dataset& dataset) {
  const AugmentConfig& augment = config.data.augment;
  const int resize = augment.resize > 0 ? augment.resize : augment.size;
  return with_locations(config, [&] {
    return InputRecord{.mean = mean_of(dataset, augment),
                       .std = std_of(dataset, augment),
                       .class_names = dataset.class_names(),
                       .shape = source_spec(dataset, augment).shown,
                       .resize = resize};
  });
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
  for (const auto& [key, given, of_weights] : statistics) {
    if (config.deck.given(key)) continue;
    config.data.augment.*given = known.*of_weights;
    config.deck.add(key, Location{.file = origin, .line = 0, .column = 0});
  }
}

void keep_statistics(RunConfig& config, const Checkpoint& checkpoint) {
  if (config.train.start.empty() || !checkpoint.inputs()) return;
  take_statistics(config, *checkpoint.inputs(), checkpoint.path());
}

std::vector<std::string> begin_with_weights(RunConfig& config, const Dataset& dataset,
                                            const std::optional<InputRecord>& known,
                                            const std::string& path, bool new_head) {
  if (!known) return {untold_inputs(path, dataset.path())};
  const InputRecord before = inputs_of(config, dataset);
  if (const auto found = class_difference(*known, before); found && !new_head)
    fail(ExitCode::usage,
         "{}: {} is {}, and in {} it is {}; train.new_head = true learns other classes, with a new "
         "last layer",
         path, found->what, found->first, dataset.path(), found->second);
  if (known->mean.size() != before.mean.size())
    fail(ExitCode::usage, "{}: was trained on images of {} channels, and those of {} have {}", path,
         known->mean.size(), dataset.path(), before.mean.size());
  take_statistics(config, *known, path);
  const InputRecord now = inputs_of(config, dataset);
  std::vector<std::string> remarks;
  for (const auto& [key, given, of_weights] : statistics) {
    const std::string taken = to_string(now.*of_weights);
    if (!same_statistics(now.*of_weights, (*known).*of_weights))
      remarks.push_back(fmt::format("{}: {} = {} is of the deck; {} was trained with {}",
                                    where(config, key), key, taken, path,
                                    to_string((*known).*of_weights)));
    else if (!same_statistics(now.*of_weights, before.*of_weights))
      remarks.push_back(fmt::format("{} = {} is that of {}; that of {} is {}", key, taken, path,
                                    dataset.path(), to_string(before.*of_weights)));
  }
  return remarks;
}

}  // namespace carousel
