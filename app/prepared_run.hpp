// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// All that is decided before a run: from the deck and the data to a checked schedule and the memory
// of every device. The front end prints it, the engine runs it; neither decides anything more.

#include <string>

#include "app/run_config.hpp"
#include "core/data/dataset.hpp"
#include "core/io/checkpoint.hpp"
#include "core/io/records.hpp"
#include "core/plan/advice.hpp"
#include "core/plan/memory_plan.hpp"
#include "core/plan/partition.hpp"
#include "core/plan/schedule.hpp"

namespace carousel {

struct PreparedRun {
  PlanBasis basis;
  Model model;
  Partition partition;
  Schedule schedule;
  MemoryPlan memory;
};

/// Builds the model, cuts it, makes and checks the schedule, plans memory. Throws Error(usage) with
/// the place in the deck when deck and data do not fit together. A build for GPUs stages messages
/// of MPI in host memory, so that memory depends on the transport; `automatic` is taken for MPI.
[[nodiscard]] PreparedRun prepare_run(const RunConfig& config, const Dataset& dataset,
                                      TransportKind transport);
/// The same for data that may be gone, from what the run file kept of it.
[[nodiscard]] PreparedRun prepare_run(const RunConfig& config, const PlanBasis& basis);

/// Batch norm of a single value would divide by zero in training, though not in evaluation; throws
/// Error(usage), as PyTorch does.
void check_batch_norm(const RunConfig& config, const PreparedRun& run);

/// The same training steps in other plans, on the [machine] of the deck, which must have one. Keeps
/// references to both.
[[nodiscard]] AdviceQuestion advice_question(const RunConfig& config, const PreparedRun& run);

/// The plan as it is stored in a run file.
[[nodiscard]] PlanRecord plan_record(const PreparedRun& run);

/// What every checkpoint of the run holds.
[[nodiscard]] CheckpointSize checkpoint_size(const PreparedRun& run);

/// Model, stages, time grid, memory and messages, for people, at 80 columns.
[[nodiscard]] std::string describe(const PreparedRun& run);

}  // namespace carousel
