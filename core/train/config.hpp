// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a deck says about training, as typed structs. Plain data: includes neither Kokkos nor the
// deck reader, so that both the front end and the engine hold the same values.

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/sampler.hpp"
#include "core/plan/agenda.hpp"
#include "core/plan/rule.hpp"

namespace carousel {

enum class OptimizerKind : std::uint8_t { sgd, adamw };
[[nodiscard]] inline const char* to_string(OptimizerKind kind) {
  return kind == OptimizerKind::sgd ? "sgd" : "adamw";
}

/// `[train.optimizer]`; the update is that of torch.optim.SGD or torch.optim.AdamW.
struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::sgd;
  double learning_rate = 0.1;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool decay_norm_and_bias = true;  // false: weight decay leaves out what is one number per feature
  double beta1 = 0.9;               // adamw
  double beta2 = 0.999;
  double epsilon = 1e-8;
  // Most that the norm of a gradient may be, of the whole model or of a stage; 0: anything.
  double clip_norm = 0;  // dp only, and instead of the other
  double clip_stage_norm = 0;
};

[[nodiscard]] inline Clipping clipping_of(const OptimizerConfig& config) {
  if (config.clip_norm > 0) return Clipping::model;
  return config.clip_stage_norm > 0 ? Clipping::stage : Clipping::none;
}

/// PyTorch's names of the numbers that an optimizer keeps beside each parameter.
[[nodiscard]] inline std::vector<std::string> optimizer_states(const OptimizerConfig& config) {
  if (config.kind == OptimizerKind::adamw) return {"exp_avg", "exp_avg_sq"};
  if (config.momentum != 0) return {"momentum"};
  return {};
}

enum class ScheduleKind : std::uint8_t { constant, step, multistep, cosine, one_cycle };
[[nodiscard]] inline const char* to_string(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::constant:
      return "constant";
    case ScheduleKind::step:
      return "step";
    case ScheduleKind::multistep:
      return "multistep";
    case ScheduleKind::cosine:
      return "cosine";
    case ScheduleKind::one_cycle:
      return "one-cycle";
  }
  return "?";
}

/// `[train.schedule]`: the learning rate as a function of the update index.
struct LearningRateConfig {
  ScheduleKind kind = ScheduleKind::constant;
  double warmup_epochs = 0;       // linear, from warmup_factor * rate to rate
  std::int64_t warmup_steps = 0;  // the same in updates; this and those below count if not 0
  double warmup_factor = 0;
  double step_epochs = 30;                         // step: epochs between two drops
  std::int64_t step_size = 0;                      // the same in updates
  std::vector<double> milestones = {};             // multistep: epochs of the drops
  std::vector<std::int64_t> milestone_steps = {};  // the same in updates
  double gamma = 0.1;                              // step, multistep: factor of a drop
  double final_factor = 0;      // cosine: rate at the end, as a fraction of the peak
  double peak_fraction = 0.3;   // one_cycle: fraction of the run that rises
  double initial_divisor = 25;  // one_cycle: peak / rate of the first update
  double final_divisor = 1e4;   // one_cycle: first / last rate
  bool per_epoch = false;       // the rate changes only between epochs
};

/// `[train]`.
struct TrainConfig {
  int micro_batch_size = 1;
  int epochs = 0;  // exactly one of epochs and steps is positive
  std::int64_t steps = 0;
  int evaluate_every = 1;      // epochs between evaluations; 0: only at the end
  double label_smoothing = 0;  // part of the target that all classes have alike
  std::string start = {};      // checkpoint whose weights are the first ones; empty: none
  bool new_head = false;       // but for the last layer with weights
  OptimizerConfig optimizer;
  LearningRateConfig schedule;
};

/// `[checkpoint]`. There is always one at the end.
struct CheckpointConfig {
  int every = 1;                 // epochs between checkpoints; 0: not for whole epochs
  std::int64_t every_steps = 0;  // the same in training steps; 0: not for steps
  double every_minutes = 0;      // the same in time; 0: not for time
  int keep = 2;                  // the newest ones; 0: all
  bool keep_best = false;        // the one with the best test accuracy, too
};

/// What all of this says about the pauses of a run.
[[nodiscard]] inline Agenda agenda_of(const TrainConfig& train, const CheckpointConfig& checkpoint,
                                      const TrainingOrder& order) {
  const std::int64_t per_epoch = order.steps_per_epoch();
  return {.total_steps = train.steps > 0 ? train.steps : train.epochs * per_epoch - order.ahead,
          .steps_per_epoch = per_epoch,
          .ahead = order.ahead,
          .evaluation_epochs = train.evaluate_every,
          .checkpoint_epochs = checkpoint.every,
          .checkpoint_steps = checkpoint.every_steps,
          .saves_evaluated = checkpoint.keep_best};
}

/// `[profile]`.
struct ProfileConfig {
  std::string steps = "0:20,::1000";  // Python slices of training steps whose actions are recorded
  bool audit = false;                 // record samples and parameters of every step
};

}  // namespace carousel
