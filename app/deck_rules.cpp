// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/deck_rules.hpp"

#include <algorithm>

#include "core/plan/placements/traits.hpp"
#include "core/train/slices.hpp"

namespace carousel {
namespace {

void add_reduction(const ParallelConfig& parallel, std::vector<NoEffect>& found) {
  const bool cyclic = parallel.rule != RuleKind::dp;
  const std::string key = "parallel.reduction";
  const std::string rule = "parallel.rule";
  const std::string placement = "parallel.placement";
  if (parallel.shards && !has_reduction(parallel, parallel.reduction) &&
      parallel.reduction != Reduction::fast)
    return found.push_back({key, {"parallel.shards"}, "use \"ordered\" or \"fast\" there"});
  switch (parallel.reduction) {
    case Reduction::ordered:
      return;
    case Reduction::local:
      if (!cyclic)
        found.push_back({key, {rule}, "it needs a cyclic rule"});
      else if (!has_reduction(parallel, Reduction::local))
        found.push_back({key, {placement}, "it needs parallel.placement = \"model\""});
      return;
    case Reduction::overlapped:
    case Reduction::owner:
      if (cyclic)
        found.push_back({key, {rule}, "it needs parallel.rule = \"dp\""});
      else if (!has_reduction(parallel, parallel.reduction))
        found.push_back({key, {placement}, "it needs parallel.placement = \"replicated\""});
      return;
    case Reduction::fast:
      break;
  }
  if (has_fast_sums(parallel)) return;
  if (traits_of(parallel.placement).meets_all)
    found.push_back(
        {key, {placement}, "one device runs all micro-batches there, so use \"ordered\""});
  else
    found.push_back({key,
                     {rule, "parallel.micro_batches", "parallel.stages"},
                     "gradients travel from device to device one by one, so use \"ordered\""});
}

void add_start(const RunConfig& config, std::vector<NoEffect>& found) {
  if (config.train.new_head && config.train.start.empty())
    found.push_back({"train.new_head", {"train.start"}, "it needs weights to start with"});
  if (!config.train.start_only.empty() && config.train.start.empty())
    found.push_back({"train.start_only", {"train.start"}, "it needs weights to start with"});
}

void add_augment(const AugmentConfig& augment, std::vector<NoEffect>& found) {
  if (augment.resize > 0 && augment.size == 0)
    found.push_back({"data.augment.resize", {"data.augment.size"}, "it needs a size to cut out"});
}

}  // namespace

std::vector<NoEffect> values_without_effect(const RunConfig& config) {
  std::vector<NoEffect> found;
  add_augment(config.data.augment, found);
  add_start(config, found);
  add_reduction(config.parallel, found);
  for (const std::vector<NoEffect>& more :
       {config.train.optimizer.without_effect(), config.train.schedule.without_effect()})
    found.insert(found.end(), more.begin(), more.end());
  return found;
}

void check_deck_rules(const RunConfig& config) {
  const auto refuse = [&]<class... Args>(std::string_view key, fmt::format_string<Args...> format,
                                         Args&&... args) {
    fail(ExitCode::usage, "{}: {} {}", where(config, key), key,
         fmt::format(format, std::forward<Args>(args)...));
  };
  with_locations(config, [&] {
    check_model(config.model);
    config.task.check();
  });

  const AugmentConfig& augment = config.data.augment;
  if (augment.resize > 0 && augment.resize < augment.size)
    refuse("data.augment.resize", "= {} is less than data.augment.size = {}", augment.resize,
           augment.size);
  if (augment.crop == CropKind::resized && augment.size == 0)
    refuse("data.augment.size", "is missing; data.augment.crop = \"resized\" needs it");
  if (augment.crop == CropKind::random && augment.size == 0 && augment.padding == 0)
    refuse("data.augment.crop", "= \"random\" needs data.augment.padding or a size to cut out");
  for (const auto& [name, bounds] : {std::pair("data.augment.scale", &augment.scale),
                                     std::pair("data.augment.ratio", &augment.ratio)}) {
    if (bounds->size() != 2 || bounds->front() > bounds->back())
      refuse(name, "must be two numbers, the smaller one first");
  }

  const bool epochs = config.deck.has("train.epochs");
  const bool steps = config.deck.has("train.steps");
  if (!epochs && !steps) refuse("train.epochs", "or train.steps is missing");

  const double seconds = config.run.watchdog_seconds;
  if (seconds > 0 && seconds < 1)
    refuse("run.watchdog_seconds", "= {} is less than a second; 0 switches the watchdog off",
           seconds);

  if (config.deck.has("run.wall_clock") && !wall_clock_seconds(config.run.wall_clock))
    refuse("run.wall_clock", "= {} must be a time such as \"23:30:00\" or \"2-12:00:00\"",
           in_quotes(config.run.wall_clock));

  const ParallelConfig& parallel = config.parallel;
  const std::string in_passes =
      parallel.passes > 1 ? fmt::format(" times parallel.passes = {}", parallel.passes) : "";
  if (parallel.micro_batches % parallel.passes != 0)
    refuse("parallel.passes", "= {} does not divide parallel.micro_batches = {}", parallel.passes,
           parallel.micro_batches);
  if (parallel.slack > parallel.stages * parallel.passes)
    refuse("parallel.slack", "= {} is more than parallel.stages = {}{}", parallel.slack,
           parallel.stages, in_passes);
  if (parallel.predict > 0 && !has_prediction(parallel))
    refuse("parallel.predict",
           "= {} has no effect with parallel.rule = \"{}\" where stages are cut or travel; leave "
           "out parallel.shards, or take another parallel.placement or parallel.rule = \"cdp-v1\"",
           parallel.predict, to_string(parallel.rule));
  if (needs_whole_slots(parallel.rule, parallel.placement) &&
      parallel.micro_batches % parallel.stages != 0)
    refuse("parallel.micro_batches",
           "= {} is not a multiple of parallel.stages = {}; parallel.placement = \"{}\" needs that "
           "with parallel.rule = \"{}\"",
           parallel.micro_batches, parallel.stages, to_string(parallel.placement),
           to_string(parallel.rule));

  if (parallel.shards && parallel.rule != RuleKind::dp && parallel.sums == Sums::ring &&
      parallel.workers() % parallel.stages != 0)
    refuse("parallel.micro_batches",
           "= {} is not a multiple of parallel.stages = {}{}; parallel.shards = true needs that",
           parallel.micro_batches, parallel.stages, in_passes);
  if (parallel.shards && config.train.optimizer.needs_whole_tensors())
    refuse("parallel.shards", "= true would cut tensors whose norms {} needs; leave it out",
           config.train.optimizer.name());
  if (parallel.shards && config.profile.audit)
    refuse("profile.audit",
           "= true keeps whole stages, and parallel.shards = true cuts them; leave "
           "that out, the numbers are the same");

  with_locations(config, [&] {
    config.train.optimizer.check();
    config.train.schedule.check();
  });
  with_locations(config, [&] { return Slices(config.profile.steps); });
}

}  // namespace carousel
