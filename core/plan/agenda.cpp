// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/agenda.hpp"

#include <algorithm>

namespace carousel {
namespace {

/// Whether `count` is a multiple of a distance that is not 0.
bool is_due(std::int64_t count, std::int64_t distance) {
  return distance > 0 && count % distance == 0;
}

bool is_due_after_epochs(const Agenda& agenda, std::int64_t steps, std::int64_t epochs) {
  return (steps + agenda.ahead) % agenda.steps_per_epoch == 0 &&
         is_due(agenda.epochs_after(steps), epochs);
}

}  // namespace

Segment Agenda::segment_at(std::int64_t step) const {
  const auto next = [](std::int64_t number, std::int64_t distance) {
    return (number / distance + 1) * distance;
  };
  std::int64_t last = std::min(next(step + ahead, steps_per_epoch) - ahead, total_steps);
  for (const std::int64_t distance : {checkpoint_steps, evaluation_steps})
    if (distance > 0) last = std::min(last, next(step, distance));
  return {step, last};
}

bool Agenda::evaluates_after(std::int64_t steps) const {
  return steps == total_steps || is_due_after_epochs(*this, steps, evaluation_epochs) ||
         is_due(steps, evaluation_steps);
}

std::int64_t Agenda::evaluations_beyond(std::int64_t steps) const {
  if (steps >= total_steps) return 0;
  const bool in_steps = evaluation_steps > 0;
  const std::int64_t distance = in_steps ? evaluation_steps : evaluation_epochs * steps_per_epoch;
  if (distance == 0) return 1;
  const std::int64_t begin = in_steps ? steps : steps + ahead;
  const std::int64_t end = begin + total_steps - steps;
  const bool one_more = end % distance != 0;  // at the end, between two that are due
  return end / distance - begin / distance + (one_more ? 1 : 0);
}

bool Agenda::saves_after(std::int64_t steps) const {
  return steps == total_steps || is_due_after_epochs(*this, steps, checkpoint_epochs) ||
         is_due(steps, checkpoint_steps) || (saves_evaluated && evaluates_after(steps));
}

}  // namespace carousel
