// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// All that is decided before a run: from a deck to a checked schedule and the memory of every
// device. The front end prints it, the engine runs it; neither decides anything more.

#include "core/forecast/advice.hpp"
#include "core/plan/memory_plan.hpp"
#include "core/plan/partition.hpp"
#include "core/plan/schedule.hpp"
#include "core/prepare/planned_deck.hpp"

namespace carousel {

struct PreparedRun {
  PlanBasis basis;
  Model model;
  Partition partition;
  Schedule schedule;
  MemoryPlan memory;
};

/// The model of the deck for such inputs and targets, with the kernels that the basis allows.
/// Throws Error(usage) as prepare_run() does.
[[nodiscard]] Model prepare_model(const PlannedDeck& deck, const PlanBasis& basis);

/// Builds the model, cuts it, makes and checks the schedule, plans memory. Throws Error(usage) when
/// deck and data do not fit together; the message begins with the key of the deck to change.
[[nodiscard]] PreparedRun prepare_run(const PlannedDeck& deck, const PlanBasis& basis);

/// Batch norm of a single value would divide by zero in training, though not in evaluation; throws
/// Error(usage), as PyTorch does.
void check_batch_norm(const PlannedDeck& deck, const PreparedRun& run);

/// The same training steps in other plans, on the machine of the deck, which must have one.
/// Keeps references to all.
[[nodiscard]] AdviceQuestion advice_question(const PlannedDeck& deck, const PreparedRun& run);

}  // namespace carousel
