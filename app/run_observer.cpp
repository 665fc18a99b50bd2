// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/run_observer.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "app/provenance.hpp"
#include "app/state_files.hpp"
#include "core/record/patience.hpp"
#include "core/train/rider.hpp"

namespace carousel {

RunObserver::RunObserver(const RunConfig& config, const PreparedRun& run, const DataSet& dataset,
                         const std::vector<int>& devices, const Ranks& ranks, StatusFile& status,
                         const RunStart& start)
    : config_(config),
      run_(run),
      ranks_(ranks),
      status_(status),
      devices_(devices),
      first_(std::ranges::find(devices, 0) != devices.end()),
      audits_(config.profile.audit),
      start_(start),
      sampler_(config.run.seed, dataset.samples(Pass::training)),
      remarks_(first_ ? dataset.remarks() : DataRemarks{}) {
  best_score_ = start.best_score;
  evaluations_ = start.history.evaluations;
  for (int j = 0; j < run.schedule.rule().stages(); ++j) {
    owners_.push_back({run.schedule.owner(j), {}});
    const StageMemory& stage = run.memory.stages[j];
    const bool here = std::ranges::find(devices, run.schedule.owner(j)) != devices.end();
    for (int k = 0; audits_ && k < stage.layers; ++k) {
      for (const ParameterSpec& parameter : run.model.layers[stage.first + k].parameters) {
        std::vector<std::string>& names = owners_.back().audited;
        names.push_back(audited_name(StatePart::parameters, 0, parameter));
        if (start.step > 0 && run.schedule.rule().cyclic())
          names.push_back(audited_name(StatePart::previous, 0, parameter));
        if (start.step > 0 && run.schedule.parallel().predict > 0)
          names.push_back(audited_name(StatePart::predicted, 0, parameter));
        for (int state = 0; start.step > 0 && state < run.memory.optimizer_states; ++state)
          names.push_back(audited_name(StatePart::optimizer, state, parameter));
        if (!here) continue;
        audits_by_stage_[j].parameters.push_back(&parameter);
        audits_by_stage_[j].values.emplace_back();
      }
    }
  }
}

void RunObserver::begin(const ExecutionSpace& exec, const Trainer& trainer, const NodeUse& node) {
  trainer_ = &trainer;
  const PartInfo part{provenance(config_), machine_of(node), start_.part, this_job()};
  const std::filesystem::path folder(config_.run.output);
  for (int device : devices_) rank_files_.try_emplace(device, folder, device, part);
  // A segment is at most an epoch; what is told of one must not take from the heap.
  const std::int64_t longest = trainer.agenda().steps_per_epoch;
  if (first_) {
    open_run_file(folder, part);
    terminal_.emplace(STDERR_FILENO, TerminalStyle::of(STDERR_FILENO),
                      RunLength{trainer.agenda(), run_.basis.test_samples, trainer.steps(),
                                names_of(run_.model.metrics()),
                                config_.data.kind == DataKind::tokens ? config_.data.context : 0,
                                tells_perplexity(config_)});
    steps_.reserve(static_cast<std::size_t>(longest));
  }
  publish();
  for (auto& [stage, audit] : audits_by_stage_) {
    // With what it begins with.
    for (std::size_t p = 0; p < audit.parameters.size(); ++p)
      audit.values[p].reserve(
          static_cast<std::size_t>(audit.parameters[p]->size() * (longest + 1)));
    const DeviceMemory& memory = trainer.device(run_.schedule.owner(stage)).memory();
    this->audit(exec, stage, memory.updated_parameters(stage, trainer.steps()),
                run_.memory.stages[stage].parameter_size);
  }
  if (audits_ && start_.step > 0)
    trainer.show_state([this](const StatePiece& piece) { audit_state(piece); });
}

void RunObserver::open_run_file(const std::filesystem::path& folder, const PartInfo& part) {
  const EpochPosition place = trainer_->order().locate(trainer_->steps(), 0);
  RunHistory history = start_.history;
  history.parts.push_back({.first_step = trainer_->steps(),
                           .epoch = place.epoch,
                           .position = place.first,
                           .devices = run_.schedule.devices(),
                           .seconds = start_.seconds});
  const PlanRecord plan = plan_record(run_);
  run_file_.emplace(folder, part, plan.metrics, history);
  run_file_->write_plan(plan);
  rank_files_.at(0).write_plan(plan);
  run_file_->link(run_.schedule.devices(), owners_);
  if (start_.part == 0)
    metrics_.emplace(folder, plan.metrics);
  else
    metrics_.emplace(folder, plan.metrics, trainer_->steps(), start_.evaluates);
}

void RunObserver::introduce(const NodeUse& node, int processes) {
  std::uint64_t slow = trainer_->slow_gradients();
  ranks_.sum(std::span(&slow, 1));
  if (!first_) return;
  ranks_.at_files([&] {
    terminal_->lines(
        describe_start(config_, run_, trainer_->agenda(), node, processes, remarks_.targets));
    if (!start_.checkpoint.empty())
      terminal_->message(fmt::format("{} {} after {} steps",
                                     start_.part == 0 ? "begins with" : "goes on from",
                                     printable(start_.checkpoint), start_.step));
    for (const std::string& warning : remarks_.warnings) terminal_->message(warning);
    for (const std::string& warning :
         {crowding(node), scattering(run_.schedule.parallel(), node), slow_gradients(slow)})
      if (!warning.empty()) terminal_->message(warning);
  });
}

void RunObserver::on_step(const StepRecord& step) {
  steps_.push_back(step);
  ranks_.at_files([&] {
    keep([&] { metrics_->write(step); });
    terminal_->step(step);
  });
}

/// What fails on this rank alone, in the middle of a segment, is told when all ranks can fail.
void RunObserver::keep(const std::function<void()>& write) {
  if (failed_) return;
  try {
    write();
  } catch (const Error& error) {
    failed_ = error;
  }
}

void RunObserver::on_update(const ExecutionSpace& queue, int, std::int64_t, int stage,
                            const real* theta, std::int64_t size) {
  if (audits_) audit(queue, stage, theta, size);
}

std::string RunObserver::audited_name(StatePart part, int state, const ParameterSpec& spec) const {
  return group_of(part, state, config_.train.optimizer) + spec.name;
}

void RunObserver::audit_state(const StatePiece& piece) {
  if (piece.part == StatePart::parameters || piece.part == StatePart::buffers) return;
  std::vector<FoundTensor>& found = audits_by_stage_[piece.stage].found;
  if (piece.first == 0)
    found.push_back({audited_name(piece.part, piece.state, piece.spec), &piece.spec, {}});
  std::vector<real>& values = found.back().values;
  values.insert(values.end(), piece.values.begin(), piece.values.end());
}

void RunObserver::audit(const ExecutionSpace& queue, int stage, const real* theta,
                        std::int64_t size) {
  StageAudit& audit = audits_by_stage_[stage];
  audit.flat.resize(static_cast<std::size_t>(size));
  copy_to_host(queue, audit.flat, theta);
  std::span<const real> rest(audit.flat);
  for (std::size_t p = 0; p < audit.parameters.size(); ++p) {
    const auto count = static_cast<std::size_t>(audit.parameters[p]->size());
    const std::span<const real> values = rest.first(count);
    audit.values[p].insert(audit.values[p].end(), values.begin(), values.end());
    rest = rest.subspan(count);
  }
}

void RunObserver::on_evaluating(const EvaluationProgress& progress) {
  ranks_.at_files([&] { terminal_->evaluating(progress); });
}

void RunObserver::on_evaluation(const EvaluationRecord& evaluation) {
  evaluations_.push_back(evaluation);
  ranks_.at_files([&] {
    keep([&] { metrics_->write(evaluation); });
    terminal_->evaluation(evaluation);
    run_file_->append(evaluation);
  });
}

/// Of a stage that several devices update in pieces, the digest is the sum of theirs.
void RunObserver::gather_receipts(const Segment& segment) {
  const auto stages = static_cast<std::size_t>(run_.schedule.rule().stages());
  const auto steps = static_cast<std::size_t>(segment.last - segment.first);
  digests_.assign(stages * steps, 0);
  for (const int device : devices_) {
    for (const Receipt& receipt : trainer_->device(device).recorder().receipts()) {
      if (!run_.schedule.shows(device, receipt.stage)) continue;
      const auto step = static_cast<std::size_t>(receipt.step - segment.first);
      digests_[static_cast<std::size_t>(receipt.stage) * steps + step] += receipt.digest;
    }
  }
  if (has_pieces(run_.schedule.parallel())) ranks_.sum(digests_);
}

std::vector<StageReceipts> RunObserver::receipts_of(int device) const {
  const auto stages = static_cast<std::size_t>(run_.schedule.rule().stages());
  const std::size_t steps = digests_.size() / stages;
  std::vector<StageReceipts> result;
  for (int j = 0; j < run_.schedule.rule().stages(); ++j) {
    if (run_.schedule.owner(j) == device)
      result.push_back(
          {j, std::span(digests_).subspan(static_cast<std::size_t>(j) * steps, steps)});
  }
  return result;
}

void RunObserver::on_segment_end(int device, const Recorder& recorder) {
  const Segment& segment = trainer_->device(device).issuer().segment();
  if (device == devices_.front()) gather_receipts(segment);
  const std::vector<StageReceipts> receipts = receipts_of(device);
  std::vector<AuditedTensor> audited;
  for (auto& [stage, audit] : audits_by_stage_) {
    if (run_.schedule.owner(stage) != device) continue;
    for (std::size_t p = 0; p < audit.parameters.size(); ++p)
      audited.push_back({audited_name(StatePart::parameters, 0, *audit.parameters[p]),
                         audit.parameters[p]->shape, audit.values[p]});
    for (const FoundTensor& tensor : audit.found)
      audited.push_back({tensor.name, tensor.spec->shape, tensor.values});
  }
  MeasuredRecord measured = trainer_->measured(device);
  measured.first_step_seconds -= start_.seconds;
  std::vector<std::int64_t> samples;
  if (audits_ && device == 0) append_samples(samples);
  ranks_.at_files([&] {
    rank_files_.at(device).append(
        {.segment = {segment.first, segment.last},
         .actions = recorder.actions(),
         .messages = recorder.messages(),
         .memory = recorder.memory(),
         .receipts = receipts,
         .audit = audited,
         .samples = {samples, config_.parallel.micro_batches, config_.train.micro_batch_size}},
        measured);
    if (device == 0) run_file_->append(steps_);
  });
  if (device == 0) steps_.clear();
  for (auto& [stage, audit] : audits_by_stage_) {
    if (run_.schedule.owner(stage) != device) continue;
    for (std::vector<real>& values : audit.values) values.clear();
    audit.found.clear();
  }
}

void RunObserver::append_samples(std::vector<std::int64_t>& samples) {
  const TrainingOrder& steps = trainer_->order();
  for (const StepRecord& step : steps_) {
    for (int i = 0; i < steps.micro_batches; ++i) {
      const EpochPosition position = steps.locate(step.step, i);
      const std::span<const int> order = sampler_.permutation(position.epoch);
      for (int k = 0; k < steps.micro_batch_size; ++k)
        samples.push_back(order[static_cast<std::size_t>(position.first + k)]);
    }
  }
}

void RunObserver::publish() {
  if (failed_) throw *failed_;
  if (run_file_) status_.check_ours();
  for (auto& [device, file] : rank_files_) file.publish();
  if (!run_file_) return;
  run_file_->publish();
  status_.write({.state = RunState::running, .step = trainer_->steps()});
}

void RunObserver::publish_evaluation() {
  if (failed_) throw *failed_;
  if (!run_file_) return;
  run_file_->publish();
  const EvaluationRecord& last = evaluations_.back();
  const double score = score_of(names_of(run_.model.metrics()), last.loss, last.metrics);
  is_best_ = score > best_score_;
  if (is_best_) best_score_ = score;
  if (!std::isfinite(last.loss))
    fail(ExitCode::diverged,
         "the test loss after step {} is not a finite number, though all parameters are; lower "
         "train.optimizer.learning_rate or look at the data",
         last.step - 1);
}

bool RunObserver::is_out_of_patience() const {
  return carousel::is_out_of_patience(evaluations_, names_of(run_.model.metrics()),
                                      config_.train.patience);
}

void RunObserver::finish() {
  for (auto& [device, file] : rank_files_) file.finish();
  if (run_file_) run_file_->finish();
}

void RunObserver::say(std::string_view text) {
  if (terminal_) terminal_->message(text);
}

}  // namespace carousel
