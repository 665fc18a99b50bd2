// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/optim/learning_rate.hpp"

#include "core/base/check.hpp"
#include "core/deck/kinds.hpp"

namespace carousel {
namespace {

using ScheduleKinds = Kinds<RateSchedule>;

template <class Kind>
bool has_own_warmup(const Kind& /*kind*/) {
  return requires {
    Kind::has_own_warmup;
  };
}

}  // namespace

std::vector<Row<LearningRateConfig>> LearningRateConfig::rows() {
  const KeyTraits with_warmup =
      only_with("train.schedule.name",
                ScheduleKinds::names_with([](const auto& kind) { return !has_own_warmup(kind); }));
  const auto kind = [](auto& config) -> auto& {
    return config.kind;
  };
  std::vector<Row<LearningRateConfig>> rows = rows_at<LearningRateConfig>(
      std::vector{ScheduleKinds::name_row("How the learning rate changes during training.")}, kind);
  const std::vector<Row<LearningRateConfig>> warmup = {
      key("warmup_epochs", &LearningRateConfig::warmup_epochs, at_least(0, "epochs"),
          "Length of the linear rise of the learning rate at the start.", with_warmup),
      key("warmup_steps", &LearningRateConfig::warmup_steps, within(0, 1e12, "training steps"),
          "The same in training steps; give either.",
          instead_of("train.schedule.warmup_epochs", with_warmup.only_with)),
      key("warmup_factor", &LearningRateConfig::warmup_factor, zero_to_one,
          "Where that rise starts, as a fraction of the learning rate.", with_warmup)};
  rows.insert(rows.end(), warmup.begin(), warmup.end());
  const auto own = rows_at<LearningRateConfig>(ScheduleKinds::rows("train.schedule"), kind);
  rows.insert(rows.end(), own.begin(), own.end());
  rows.push_back(key("per_epoch", &LearningRateConfig::per_epoch, anything,
                     "Whether the learning rate changes only between epochs; keys in training "
                     "steps count each of them."));
  return rows;
}

std::vector<NoEffect> LearningRateConfig::without_effect() const {
  std::vector<NoEffect> found;
  const std::string warmup = "train.schedule.warmup_epochs";
  if (warmup_epochs > 0 || warmup_steps > 0) return found;
  if (warmup_factor > 0)
    found.push_back({"train.schedule.warmup_factor", {warmup}, "it needs a warm-up"});
  if (per_epoch && std::holds_alternative<ConstantRate>(kind))
    found.push_back({"train.schedule.per_epoch",
                     {"train.schedule.name", warmup},
                     "it needs a learning rate that changes"});
  return found;
}

void LearningRateConfig::check() const {
  std::visit(
      [](const auto& schedule) {
        if constexpr (requires { schedule.check(); }) schedule.check();
      },
      kind);
}

double learning_rate(const LearningRateConfig& config, double base, std::int64_t t,
                     std::int64_t steps_per_epoch, std::int64_t total_steps, std::int64_t ahead) {
  CAROUSEL_CHECK(t >= 0 && t >= ahead && steps_per_epoch > 0 && total_steps > 0,
                 "update {}, {} ahead, {} steps per epoch, {} in total", t, ahead, steps_per_epoch,
                 total_steps);
  // With per_epoch, time in epochs stands still until the next one; keys in steps count each.
  TrainingTime time{.step = t - ahead,
                    .held = config.per_epoch ? t / steps_per_epoch * steps_per_epoch : t,
                    .total = total_steps,
                    .per_epoch = steps_per_epoch,
                    .in_epochs = config.per_epoch};
  time.warmup = config.warmup_steps > 0
                    ? static_cast<double>(config.warmup_steps)
                    : config.warmup_epochs * static_cast<double>(steps_per_epoch);
  const bool own_warmup =
      std::visit([](const auto& kind) { return has_own_warmup(kind); }, config.kind);
  if (own_warmup && time.warmup > 0)
    fail(ExitCode::usage,
         "train.schedule.warmup_epochs: {} has a warm-up of its own; leave the key out",
         ScheduleKinds::name_of(config.kind));
  const auto warming = static_cast<double>(config.warmup_steps > 0 ? time.step : time.held);
  if (warming < time.warmup)
    return base * (config.warmup_factor + (1 - config.warmup_factor) * warming / time.warmup);
  return std::visit([&](const auto& kind) { return kind.rate(base, time); }, config.kind);
}

}  // namespace carousel
