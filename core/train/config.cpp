// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/config.hpp"

#include "core/deck/row.hpp"
#include "core/plan/rule.hpp"

namespace carousel {

std::vector<Row<TrainConfig>> TrainConfig::rows() {
  std::vector<Row<TrainConfig>> rows = {
      key("micro_batch_size", &TrainConfig::micro_batch_size, within(1, most_micro_batch_size),
          "Samples in a micro-batch.", bound(Bond::numbers, required_key)),
      key("epochs", &TrainConfig::epochs, within(1, 1e9),
          "Length of the training in passes over the training set. Give either this or steps.",
          optional_key),
      key("steps", &TrainConfig::steps, within(1, 1e12),
          "Length of the training in training steps. Give either this or epochs.",
          instead_of("train.epochs")),
      key("evaluate_every", &TrainConfig::evaluate_every, within(0, 1e9, "epochs"),
          "Interval between evaluations on the test set. 0 evaluates only at the end."),
      key("evaluate_steps", &TrainConfig::evaluate_steps, within(1, 1e12, "training steps"),
          "The same in training steps; give either.", instead_of("train.evaluate_every")),
      key("patience", &TrainConfig::patience, within(0, 1e9, "evaluations"),
          "How many evaluations in a row may be no better than the best one, by the first of "
          "task.metrics or else the loss, before the run ends. 0 trains to the end. "
          "checkpoint.keep_best keeps the best one."),
      key("start", &TrainConfig::start, anything,
          "Checkpoint, also of `carousel import weights`, whose weights training starts with. "
          "Optimizer and steps start anew. Mean and std are those that the weights were trained "
          "with, unless the deck gives its own; other names of classes need new_head. Relative as "
          "data.file.",
          optional_key),
      key("new_head", &TrainConfig::new_head, anything,
          "Whether the last layer with weights starts anew, so that train.start, or the file of "
          "`carousel import weights`, may be of other classes."),
      key("start_only", &TrainConfig::start_only, anything,
          "Which tensors train.start, or that file, gives, as names in which * and ? stand for any "
          "letters: \"encoder.*\". All others start anew, and what else the file has does not "
          "matter. Without the key: all.",
          optional_key),
      key("freeze", &TrainConfig::freeze, anything,
          "Which parameters stay as they begin, as names in which * and ? stand for any letters: "
          "\"encoder.*\". They have no gradient, no optimizer state and no message, and what "
          "nothing learns before is not computed backwards. Layers are frozen whole; batch norms "
          "still normalise by their micro-batches, and count.",
          bound(Bond::fixed, optional_key)),
  };
  const auto averages = rows_at<TrainConfig>(
      std::vector{OptimizerConfig::average_row()},
      [](auto& config) -> auto& { return config.optimizer; });
  rows.insert(rows.end(), averages.begin(), averages.end());
  return rows;
}

std::vector<Row<CheckpointConfig>> CheckpointConfig::rows() {
  return {
      key("every", &CheckpointConfig::every, within(0, 1e9, "epochs"),
          "Interval between checkpoints. 0 writes none after epochs. The end of a run always has "
          "one."),
      key("every_steps", &CheckpointConfig::every_steps, within(0, 1e12, "training steps"),
          "Interval between further checkpoints. 0 writes none."),
      key("every_minutes", &CheckpointConfig::every_minutes, within(0, 1e9, "minutes"),
          "Interval between further checkpoints, which come a few steps later. 0 writes none."),
      key("keep", &CheckpointConfig::keep, within(0, 1e9),
          "How many checkpoints stay, the newest ones. 0 keeps all."),
      key("keep_best", &CheckpointConfig::keep_best, anything,
          "Whether there is a checkpoint for every evaluation, and the best one by the "
          "first of task.metrics stays, as checkpoints/best.h5, the first of several."),
  };
}

std::vector<Row<ProfileConfig>> ProfileConfig::rows() {
  return {
      key("steps", &ProfileConfig::steps, anything,
          "Training steps whose actions are recorded, as Python slices. \"\" records none."),
      key("audit", &ProfileConfig::audit, anything,
          "Whether to record samples and parameters of every step, so that anybody can replay the "
          "run."),
  };
}

}  // namespace carousel
