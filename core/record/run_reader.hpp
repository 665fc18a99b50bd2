// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a run folder says after the fact, as one plain struct for reports. It reads the small parts
// only, not the rows of actions, messages and memory.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/record/plan_record.hpp"
#include "core/record/run_file.hpp"
#include "core/record/run_folder.hpp"
#include "core/train/records.hpp"

namespace carousel {

struct RunSummary {
  std::string folder;
  std::string file;  // run.h5 in it
  RunInfo info;
  std::optional<RunStatus> status;
  std::optional<PlanRecord> plan;
  std::vector<std::string> missing;                  // files of ranks that are not there
  std::vector<MeasuredRecord> measured;              // [rank], unless one of them has none
  std::vector<std::vector<std::uint64_t>> receipts;  // [stage][step]
  std::int64_t steps = 0;
  std::vector<EvaluationRecord> evaluations;
  std::vector<double> losses;          // [step]
  std::vector<double> learning_rates;  // [step]
  double images_per_second = 0;        // median over the training steps
};

/// Reads a run folder, or the folder of a given run.h5. Error(input_output) when there is none,
/// Error(bad_data) when it is damaged. Files of ranks may be missing.
[[nodiscard]] RunSummary read_run(const std::string& path);

/// "ranks/0001.h5 is missing", "ranks/0001.h5 and 2 more are missing", or nothing.
[[nodiscard]] std::string missing_files(const RunSummary& run);

/// Sum over all devices of a category's peak, as measured and as planned.
[[nodiscard]] std::int64_t measured_bytes(const RunSummary& run, Category category);
[[nodiscard]] std::int64_t planned_bytes(const PlanRecord& plan, Category category);

}  // namespace carousel
