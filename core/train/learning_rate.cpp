// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/learning_rate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/check.hpp"

namespace carousel {
namespace {

/// From `first` at fraction 0 to `last` at fraction 1 along half a cosine.
double anneal(double first, double last, double fraction) {
  return last + (first - last) / 2 * (1 + std::cos(std::numbers::pi * fraction));
}

/// torch.optim.lr_scheduler.OneCycleLR with two phases, cosine. Positions are updates, or epochs.
double one_cycle(const LearningRateConfig& config, double peak, double position, double total) {
  const double initial = peak / config.initial_divisor;
  const double turn = config.peak_fraction * total - 1;
  const double end = total - 1;
  if (position <= turn) return anneal(initial, peak, turn > 0 ? position / turn : 1);
  const double fall = end > turn ? (position - turn) / (end - turn) : 1;
  return anneal(peak, initial / config.final_divisor, std::min(fall, 1.0));
}

/// Updates from one drop to the next.
std::int64_t step_size(const LearningRateConfig& config, std::int64_t steps_per_epoch) {
  if (config.step_size > 0) return config.step_size;
  const double steps = config.step_epochs * static_cast<double>(steps_per_epoch);
  if (steps < 0.5)
    fail(ExitCode::usage,
         "train.schedule.step_epochs = {} is less than a training step, of which an epoch has {}; "
         "use train.schedule.step_size",
         config.step_epochs, steps_per_epoch);
  return std::llround(steps);
}

/// An update in both of the units that keys have.
struct Time {
  std::int64_t step = 0;  // of the run
  std::int64_t held = 0;  // in updates of the present size; stands still where a rate is held
};

/// Drops that are due.
std::int64_t drops_due(const LearningRateConfig& config, const Time& now,
                       std::int64_t steps_per_epoch) {
  const std::int64_t size = step_size(config, steps_per_epoch);
  return (config.step_size > 0 ? now.step : now.held) / size;
}

std::ptrdiff_t milestones_reached(const LearningRateConfig& config, const Time& time,
                                  std::int64_t steps_per_epoch) {
  if (!config.milestone_steps.empty())
    return std::ranges::count_if(config.milestone_steps,
                                 [&](std::int64_t at) { return at <= time.step; });
  // 0.07 epochs of 100 updates are 7.000000000000001 in doubles, and 7.
  constexpr double rounding = 1e-12;
  const double now = static_cast<double>(time.held) * (1 + rounding);
  return std::ranges::count_if(config.milestones, [&](double epochs) {
    return epochs * static_cast<double>(steps_per_epoch) <= now;
  });
}

}  // namespace

double learning_rate(const LearningRateConfig& config, double base, std::int64_t t,
                     std::int64_t steps_per_epoch, std::int64_t total_steps, std::int64_t ahead) {
  CAROUSEL_CHECK(t >= 0 && t >= ahead && steps_per_epoch > 0 && total_steps > 0,
                 "update {}, {} ahead, {} steps per epoch, {} in total", t, ahead, steps_per_epoch,
                 total_steps);
  // With per_epoch, time in epochs stands still until the next one; keys in steps count each.
  const auto per_epoch = static_cast<double>(steps_per_epoch);
  const Time time{t - ahead, config.per_epoch ? t / steps_per_epoch * steps_per_epoch : t};
  const auto now = static_cast<double>(time.held);
  const auto total = static_cast<double>(total_steps);
  const double warmup = config.warmup_steps > 0 ? static_cast<double>(config.warmup_steps)
                                                : config.warmup_epochs * per_epoch;

  if (config.kind == ScheduleKind::one_cycle) {
    if (warmup > 0)
      fail(ExitCode::usage,
           "train.schedule.warmup_epochs: one_cycle has a warm-up of its own; "
           "leave the key out or set peak_fraction");
    return config.per_epoch ? one_cycle(config, base, now / per_epoch, std::ceil(total / per_epoch))
                            : one_cycle(config, base, now, total);
  }
  const double warming = config.warmup_steps > 0 ? static_cast<double>(time.step) : now;
  if (warming < warmup)
    return base * (config.warmup_factor + (1 - config.warmup_factor) * warming / warmup);

  switch (config.kind) {
    case ScheduleKind::constant:
      return base;
    case ScheduleKind::step:
      return base *
             std::pow(config.gamma, static_cast<double>(drops_due(config, time, steps_per_epoch)));
    case ScheduleKind::multistep:
      return base * std::pow(config.gamma, static_cast<double>(
                                               milestones_reached(config, time, steps_per_epoch)));
    case ScheduleKind::cosine: {
      // A warm-up in steps ends where it ends: in the middle of an epoch, or at another update than
      // one of the present size.
      const double fraction = total > warmup ? (now - warmup) / (total - warmup) : 1;
      return anneal(base, config.final_factor * base, std::clamp(fraction, 0.0, 1.0));
    }
    case ScheduleKind::one_cycle:
      break;
  }
  return base;
}

double learning_rate(const TrainConfig& train, const Agenda& agenda, std::int64_t step) {
  return learning_rate(train.schedule, train.optimizer.learning_rate, step + agenda.ahead,
                       agenda.steps_per_epoch, agenda.total_steps + agenda.ahead, agenda.ahead);
}

}  // namespace carousel
