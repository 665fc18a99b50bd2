// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// All that is decided before a run: from a request to a checked schedule and the memory of every
// device. The front end prints it, the engine runs it; neither decides anything more.

#include "core/forecast/advice.hpp"
#include "core/plan/memory_plan.hpp"
#include "core/plan/partition.hpp"
#include "core/plan/schedule.hpp"
#include "core/prepare/request.hpp"

namespace carousel {

struct PreparedRun {
  PlanBasis basis;
  Model model;
  Partition partition;
  Schedule schedule;
  MemoryPlan memory;
};

/// Builds the model, cuts it, makes and checks the schedule, plans memory. Throws Error(usage) when
/// request and data do not fit together; the message begins with the key of the deck to change.
[[nodiscard]] PreparedRun prepare_run(const PlanRequest& request, const PlanBasis& basis);

/// Batch norm of a single value would divide by zero in training, though not in evaluation; throws
/// Error(usage), as PyTorch does.
void check_batch_norm(const PlanRequest& request, const PreparedRun& run);

/// The same training steps in other plans, on the machine of the request, which must have one.
/// Keeps references to both.
[[nodiscard]] AdviceQuestion advice_question(const PlanRequest& request, const PreparedRun& run);

}  // namespace carousel
