// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks a run on disk against what it must have recorded, as that follows from its deck. It reads
// and compares; how deck and plan hang together is the caller's knowledge.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/data/sampler.hpp"
#include "core/plan/memory_plan.hpp"
#include "core/plan/schedule.hpp"
#include "core/record/run_reader.hpp"
#include "core/train/records.hpp"

namespace carousel {

/// What follows from the deck of a part of a run; what is borrowed outlives the check.
struct Expectation {
  const Model& model;
  const Schedule& schedule;
  const MemoryPlan& memory;
  PlanRecord plan;
  std::uint64_t seed = 0;
  int micro_batch_size = 1;
  std::vector<std::string> optimizer_states = {};  // names of what the optimizer keeps
  TrainingOrder order;
  Agenda agenda;
  std::function<bool(std::int64_t)> profiled;         // this step
  std::function<double(std::int64_t)> learning_rate;  // of this update
};

/// How much was looked at and found right.
struct Verified {
  std::int64_t steps = 0;
  std::int64_t lost_steps = 0;  // that a part made and the next one did not go on from
  std::int64_t evaluations = 0;
  std::int64_t profiled_steps = 0;
  std::int64_t actions = 0;   // rows, and as many of memory
  std::int64_t messages = 0;  // pairs of send and receive
  std::int64_t receipts = 0;
  std::int64_t checkpoint_step = -1;  // whose parameters have these receipts; -1: there is none
};

/// Throws Error(bad_data) naming file, dataset and row of the first thing that is wrong, in any of
/// the run's parts. A run that diverged must end where the rule says. If a run was killed or
/// failed, every file is checked as far as it goes, in whole segments; whether that is all of the
/// run is the caller's question.
[[nodiscard]] Verified verify_run(const RunSummary& run, std::span<const Expectation> parts);

}  // namespace carousel
