// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// When a run pauses, and what happens then: a pure function of how many steps are done. Trainer,
// files and `verify` ask the same one.

#include <cstdint>

namespace carousel {

/// Training steps first .. last - 1, executed without interruption. All devices enter and leave it
/// with complete copies of theta_first, theta_{first-1} and theta_last, theta_{last-1}.
struct Segment {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

struct Agenda {
  std::int64_t total_steps = 0;
  std::int64_t steps_per_epoch = 1;
  // What a step is ahead of its number, where steps had another size before: TrainingOrder::ahead.
  std::int64_t ahead = 0;
  std::int64_t evaluation_epochs = 0;  // between evaluations; 0: not for whole epochs
  std::int64_t checkpoint_epochs = 0;  // between checkpoints; 0: not for whole epochs
  std::int64_t checkpoint_steps = 0;   // the same in steps; 0: not for steps
  bool saves_evaluated = false;        // there is one wherever the test set is evaluated
  int patience = 0;  // evaluations in a row without a better one that end a run; 0: none do
  std::int64_t evaluation_steps = 0;  // between evaluations, instead of epochs; 0: not for steps

  /// Epochs that are begun.
  [[nodiscard]] std::int64_t epochs() const {
    return (total_steps + ahead + steps_per_epoch - 1) / steps_per_epoch;
  }
  /// Epochs that are over after `steps` updates, which is also the epoch of that step.
  [[nodiscard]] std::int64_t epochs_after(std::int64_t steps) const {
    return (steps + ahead) / steps_per_epoch;
  }
  /// The segment that begins with `step`, unless somebody wants a pause before its end. Segments
  /// end with epochs, so that records reach the disk, and where there is a checkpoint or an
  /// evaluation to be made.
  [[nodiscard]] Segment segment_at(std::int64_t step) const;
  /// Whether the test set is evaluated after `steps` updates; it is at the end.
  [[nodiscard]] bool evaluates_after(std::int64_t steps) const;
  /// Evaluations after more than `steps` updates.
  [[nodiscard]] std::int64_t evaluations_beyond(std::int64_t steps) const;
  /// Whether a checkpoint is made after `steps` updates; one is at the end.
  [[nodiscard]] bool saves_after(std::int64_t steps) const;
};

}  // namespace carousel
