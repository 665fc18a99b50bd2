// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a run folder says after the fact, as one plain struct for reports. It reads the small parts
// only, not the rows of actions, messages and memory.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/record/plan_record.hpp"
#include "core/record/run_file.hpp"
#include "core/record/run_folder.hpp"
#include "core/train/records.hpp"

namespace carousel {

/// A part of a run, which has a program, a machine and a plan of its own.
struct RunPart {
  PartRecord part;
  int number = 0;
  RunInfo info;
  std::string machine;  // of rank 0; files of earlier versions do not tell, nor of the job
  BatchJob job;
  std::optional<PlanRecord> plan;
  std::vector<std::string> missing;                  // files of ranks that are not there
  std::vector<MeasuredRecord> measured;              // [rank], unless one of them has none
  std::vector<std::vector<std::uint64_t>> receipts;  // [stage][step of the part]
};

/// A run: its newest part, and the history of all.
struct RunSummary : RunPart {
  std::string folder;
  std::string file;  // run.h5 in it
  std::optional<RunStatus> status;
  std::vector<RunPart> earlier;      // parts; what they did beyond the begin of the next was lost
  std::int64_t steps = 0;            // updates that were made in all
  std::vector<std::string> metrics;  // names, in the order of their values
  std::vector<EvaluationRecord> evaluations;
  std::vector<StepRecord> rows;  // from the first part's first step on
  double images_per_second = 0;  // median over the training steps

  /// The first step that the run has a row of.
  [[nodiscard]] std::int64_t first_step() const {
    return (earlier.empty() ? part : earlier.front().part).first_step;
  }
};

/// Reads a run folder, or the folder of a given run.h5. Error(input_output) when there is none,
/// Error(bad_data) when it is damaged. Files of ranks may be missing.
[[nodiscard]] RunSummary read_run(const std::string& path);

/// What the run in a folder has told of its first `steps` updates.
[[nodiscard]] RunHistory read_history(const std::filesystem::path& folder, std::int64_t steps);
/// The resolved deck of the run in a folder.
[[nodiscard]] std::string read_deck_of(const std::filesystem::path& folder);

/// "ranks/0001.h5 is missing", "ranks/0001.h5 and 2 more are missing", or nothing.
[[nodiscard]] std::string missing_files(const RunSummary& run);

/// Sum over all devices of a category's peak, as measured and as planned.
[[nodiscard]] std::int64_t measured_bytes(const RunSummary& run, Category category);
[[nodiscard]] std::int64_t planned_bytes(const PlanRecord& plan, Category category);

}  // namespace carousel
