// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a deck says about training, as typed structs. Plain data without Kokkos, so that both the
// front end and the engine hold the same values.

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/sampler.hpp"
#include "core/optim/learning_rate.hpp"
#include "core/optim/optimizer.hpp"
#include "core/plan/agenda.hpp"

namespace carousel {

/// `[train]`.
struct TrainConfig {
  int micro_batch_size = 1;
  int epochs = 0;  // exactly one of epochs and steps is positive
  std::int64_t steps = 0;
  int evaluate_every = 1;           // epochs between evaluations; 0: only at the end
  std::int64_t evaluate_steps = 0;  // the same in training steps; counts if not 0
  int patience = 0;        // evaluations in a row without a better one that end it; 0: none do
  std::string start = {};  // checkpoint whose weights are the first ones; empty: none
  bool new_head = false;   // but for the last layer with weights
  std::vector<std::string> start_only = {};  // and for what none of these patterns match; none: all
  std::vector<std::string> freeze = {};  // patterns of names of parameters that stay as they begin
  OptimizerConfig optimizer;
  LearningRateConfig schedule;

  [[nodiscard]] static std::vector<Row<TrainConfig>> rows();
};

/// `[checkpoint]`. There is always one at the end.
struct CheckpointConfig {
  int every = 1;                 // epochs between checkpoints; 0: not for whole epochs
  std::int64_t every_steps = 0;  // the same in training steps; 0: not for steps
  double every_minutes = 0;      // the same in time; 0: not for time
  int keep = 2;                  // the newest ones; 0: all
  bool keep_best = false;        // the one that evaluates best, too

  [[nodiscard]] static std::vector<Row<CheckpointConfig>> rows();
};

/// What all of this says about the pauses of a run.
[[nodiscard]] inline Agenda agenda_of(const TrainConfig& train, const CheckpointConfig& checkpoint,
                                      const TrainingOrder& order) {
  const std::int64_t per_epoch = order.steps_per_epoch();
  return {.total_steps = train.steps > 0 ? train.steps : train.epochs * per_epoch - order.ahead,
          .steps_per_epoch = per_epoch,
          .ahead = order.ahead,
          .evaluation_epochs = train.evaluate_steps > 0 ? 0 : train.evaluate_every,
          .checkpoint_epochs = checkpoint.every,
          .checkpoint_steps = checkpoint.every_steps,
          .saves_evaluated = checkpoint.keep_best,
          .patience = train.patience,
          .evaluation_steps = train.evaluate_steps};
}

/// `[profile]`.
struct ProfileConfig {
  std::string steps = "0:20,::1000";  // Python slices of training steps whose actions are recorded
  bool audit = false;                 // record samples and parameters of every step

  [[nodiscard]] static std::vector<Row<ProfileConfig>> rows();
};

}  // namespace carousel
