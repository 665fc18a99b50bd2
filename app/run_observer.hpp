// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes down what a training tells: the terminal and metrics.jsonl while it runs, the HDF5 files
// of run and ranks when they are published, after every segment. It decides nothing and changes
// nothing.

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/ranks.hpp"
#include "app/requested_run.hpp"
#include "app/run_config.hpp"
#include "app/run_start.hpp"
#include "app/start_text.hpp"
#include "app/terminal.hpp"
#include "core/data/data_set.hpp"
#include "core/data/sampler.hpp"
#include "core/record/metrics_log.hpp"
#include "core/record/run_file.hpp"
#include "core/record/run_folder.hpp"
#include "core/train/trainer.hpp"

namespace carousel {

class RunObserver final : public TrainingObserver {
 public:
  /// `devices` are those of this process; with device 0 among them it also keeps run.h5, metrics
  /// and the terminal. Borrows all but those.
  RunObserver(const RunConfig& config, const PreparedRun& run, const DataSet& dataset,
              const std::vector<int>& devices, const Ranks& ranks, StatusFile& status,
              const RunStart& start);

  /// Called once the trainer stands and the run folder exists, before it runs: makes the files and
  /// writes down what audited stages begin with.
  void begin(const ExecutionSpace& exec, const Trainer& trainer, const NodeUse& node);

  /// Tells people what begins, by rank 0.
  void introduce(const NodeUse& node, int processes);

  void on_step(const StepRecord& step) override;
  void on_update(const ExecutionSpace& queue, int device, std::int64_t step, int stage,
                 const real* theta, std::int64_t size) override;
  void on_evaluating(const EvaluationProgress& progress) override;
  void on_evaluation(const EvaluationRecord& evaluation) override;
  void on_segment_end(int device, const Recorder& recorder) override;

  /// Brings all that was told to the files of run and ranks, and the step to status.json.
  void publish();
  /// Brings an evaluation to the file of the run; Error(diverged) when its loss is not finite.
  void publish_evaluation();
  /// Whether no evaluation before was as good as the last one, which has just been published; on
  /// rank 0.
  [[nodiscard]] bool is_best() const { return is_best_; }
  /// Whether the run ends because its evaluations get no better; on rank 0.
  [[nodiscard]] bool is_out_of_patience() const;
  /// Makes those files compact, once all is in them.
  void finish();
  /// A line for people, by rank 0.
  void say(std::string_view text);

 private:
  /// A tensor beside parameters that a part of a run goes on from.
  struct FoundTensor {
    std::string name;
    const ParameterSpec* spec;
    std::vector<real> values;
  };
  /// theta of a stage after each update of the segment, tensor by tensor.
  struct StageAudit {
    std::vector<const ParameterSpec*> parameters;  // of the run's model
    std::vector<std::vector<real>> values;         // [parameter][rows * size]
    std::vector<real> flat;                        // all parameters, after one update
    std::vector<FoundTensor> found;                // until the first segment ends
  };

  void keep(const std::function<void()>& write);
  void audit(const ExecutionSpace& queue, int stage, const real* theta, std::int64_t size);
  /// What an audited part goes on from: theta_{t-1} and what the optimizer keeps.
  void audit_state(const StatePiece& piece);
  [[nodiscard]] std::string audited_name(StatePart part, int state,
                                         const ParameterSpec& spec) const;
  void append_samples(std::vector<std::int64_t>& samples);
  void gather_receipts(const Segment& segment);
  [[nodiscard]] std::vector<StageReceipts> receipts_of(int device) const;
  void open_run_file(const std::filesystem::path& folder, const PartInfo& part);

  const RunConfig& config_;
  const PreparedRun& run_;
  const Ranks& ranks_;
  StatusFile& status_;
  std::vector<int> devices_;
  std::vector<StageOwner> owners_;
  bool first_ = false;
  bool audits_ = false;
  const RunStart& start_;
  Sampler sampler_;
  DataRemarks remarks_;  // of device 0
  const Trainer* trainer_ = nullptr;
  std::map<int, RankFile> rank_files_;
  std::map<int, StageAudit> audits_by_stage_;
  std::vector<std::uint64_t> digests_;  // [stage, step of the segment]
  std::optional<RunFile> run_file_;
  std::optional<MetricsLog> metrics_;
  std::optional<Terminal> terminal_;
  std::vector<StepRecord> steps_;
  std::vector<EvaluationRecord> evaluations_;  // on rank 0, those of earlier parts, too
  double best_score_ = -std::numeric_limits<double>::infinity();
  bool is_best_ = false;
  std::optional<Error> failed_;
};

}  // namespace carousel
