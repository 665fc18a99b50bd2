// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The HDF5 files of a run: run.h5, and one file per rank that run.h5 links to, so that a reader
// sees one file. They take records; what the records mean for training they do not know.
//
// After every segment, publish() adds its rows to the file on disk, so that what a run writes grows
// with its length. A run killed at any moment leaves all that was published, and nobody who looks
// at a file (HDF5 locks what it opens) can make the run fail. core/base/row_file.hpp says how.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hdf5.hpp"
#include "core/base/real.hpp"
#include "core/base/row_file.hpp"
#include "core/record/batch_job.hpp"
#include "core/record/plan_record.hpp"
#include "core/train/records.hpp"

namespace carousel {

/// Where a file comes from; attributes of /info in every file of a run.
struct RunInfo {
  std::string program_version;
  std::string git_hash;
  std::string libraries;   // "Kokkos 4.5.1, HDF5 1.10.8, MPICH 4.0.2"
  std::string start_time;  // ISO 8601, UTC
  std::uint64_t seed = 0;
  std::string deck;  // resolved: every key with its value
};

/// What a file is, such as a "carousel run", and the version of it that this program writes and
/// reads.
struct FileFormat {
  const char* name;
  std::int64_t version = 1;
};
inline constexpr FileFormat run_format = {"carousel run"};
inline constexpr FileFormat rank_format = {"carousel rank"};
inline constexpr FileFormat predictions_format = {"carousel predictions"};

/// Writes format, version and `info` as attributes of a group.
void write_info(hdf5::File& file, const FileFormat& format, const RunInfo& info,
                const std::string& group = "/info");
/// Reads /info; Error(bad_data) when the file is of another format or version.
[[nodiscard]] RunInfo read_info(const hdf5::File& file, const FileFormat& format);

/// What a run has told before the part that goes on with it, as far as that part builds on it.
struct RunHistory {
  std::vector<StepRecord> steps;
  std::vector<EvaluationRecord> evaluations;
  std::vector<PartRecord> parts;  // the newest is the one that begins
  std::vector<std::string> metrics = {};
};

/// What one start of the program is, as all of its files tell.
struct PartInfo {
  RunInfo info;
  std::string machine = {};  // "nid001, AMD EPYC 9654, 64 threads"
  int number = 0;            // of the run's parts
  BatchJob job = {};
};

/// Who keeps a stage: its device writes the receipts and, with audit, these tensors.
struct StageOwner {
  int device = 0;
  std::vector<std::string> audited;  // as AuditedTensor::name
};

/// run.h5; rank 0 writes it. The folder exists. Rows of steps and evaluations are those of all
/// parts of the run, all else is of the newest part.
class RunFile {
 public:
  /// Steps and evaluations have columns of these metrics.
  RunFile(const std::filesystem::path& folder, const PartInfo& part,
          std::vector<std::string> metrics, const RunHistory& history);

  void write_plan(const PlanRecord& plan) { plan_ = plan; }
  /// Links /ranks/R, /receipts/S and, with audit, /audit to the files of the ranks.
  void link(int ranks, std::span<const StageOwner> stages);
  /// Adds rows.
  void append(std::span<const StepRecord> steps);
  void append(const EvaluationRecord& evaluation);
  /// Brings all that was added to the file.
  void publish();
  /// The same for the last time: makes the file compact, and all of it have checksums.
  void finish();

 private:
  void write_rest(hdf5::File& file) const;

  hdf5::RowFile file_;
  PartInfo part_;
  std::vector<std::string> metrics_;
  std::optional<PlanRecord> plan_;
  int ranks_ = 0;
  std::vector<StageOwner> stages_;
};

/// Digests of a stage's parameters, one per update.
struct StageReceipts {
  int stage = 0;
  std::span<const std::uint64_t> digests;
};

/// Values of one audited tensor, one row per recorded step; of what a part of a run goes on from
/// beside parameters, the first row alone.
struct AuditedTensor {
  std::string name;  // in /audit: "/parameters/P", "/previous/P", "/optimizer/momentum/P"
  std::vector<std::int64_t> shape;
  std::span<const real> values;  // [rows, shape]
};

/// Samples of every micro-batch of some steps.
struct AuditedSamples {
  std::span<const std::int64_t> samples = {};  // [steps, N, b], indices into /train
  int micro_batches = 1;                       // N
  int micro_batch_size = 1;                    // b
};

/// What one rank knows after a segment. Action rows of memory records count from the part's start.
struct RankSegment {
  SegmentRecord segment = {};
  std::span<const ActionRecord> actions = {};
  std::span<const MessageRecord> messages = {};
  std::span<const MemoryRecord> memory = {};
  std::span<const StageReceipts> receipts = {};
  std::span<const AuditedTensor> audit = {};
  AuditedSamples samples = {};
};

/// ranks/NNNN.h5, or that of a later part; each rank writes its own, or one process all of them.
/// The folder exists. Until the first segment ends, a file has no /measured. That of rank 0 has the
/// plan.
class RankFile {
 public:
  RankFile(const std::filesystem::path& folder, int rank, const PartInfo& part);

  void write_plan(const PlanRecord& plan) { plan_ = plan; }
  /// Adds rows and renews /measured.
  void append(const RankSegment& segment, const MeasuredRecord& measured);
  /// As of RunFile.
  void publish();
  void finish();

 private:
  void write_rest(hdf5::File& file) const;

  hdf5::RowFile file_;
  int rank_;
  PartInfo part_;
  std::optional<PlanRecord> plan_;
  std::optional<MeasuredRecord> measured_;
};

}  // namespace carousel
