// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/run_observer.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "app/provenance.hpp"
#include "core/train/rider.hpp"

namespace carousel {

RunObserver::RunObserver(const RunConfig& config, const PreparedRun& run, const Dataset& dataset,
                         const std::vector<int>& devices, const Ranks& ranks, StatusFile& status)
    : config_(config),
      run_(run),
      ranks_(ranks),
      status_(status),
      devices_(devices),
      first_(std::ranges::find(devices, 0) != devices.end()),
      audits_(config.profile.audit),
      order_{dataset.train().samples(), config.parallel.micro_batches,
             config.train.micro_batch_size},
      sampler_(config.run.seed, dataset.train().samples()),
      digests_(run.schedule.rule().stages()) {
  const Agenda agenda = agenda_of(config.train, config.checkpoint, order_.steps_per_epoch());
  const std::int64_t longest = agenda.segment_at(0).last;  // steps of a segment
  for (int j = 0; j < run.schedule.rule().stages(); ++j) {
    owners_.push_back({run.schedule.owner(j), {}});
    const StageMemory& stage = run.memory.stages[j];
    const bool here = std::ranges::find(devices, run.schedule.owner(j)) != devices.end();
    for (int k = 0; audits_ && k < stage.layers; ++k) {
      for (const ParameterSpec& parameter : run.model.layers[stage.first + k].parameters) {
        owners_.back().audited.push_back(parameter.name);
        if (!here) continue;
        audits_by_stage_[j].names.push_back(parameter.name);
        audits_by_stage_[j].shapes.push_back(parameter.shape);
        audits_by_stage_[j].values.emplace_back();
        // Room for theta_0 and for a segment of updates, which must not take from the heap.
        audits_by_stage_[j].values.back().reserve(
            static_cast<std::size_t>(parameter.size() * (longest + 1)));
      }
    }
  }
}

void RunObserver::begin(const ExecutionSpace& exec, const Trainer& trainer) {
  exec_ = exec;
  trainer_ = &trainer;
  const RunInfo info = provenance(config_);
  const std::filesystem::path folder(config_.run.output);
  for (int device : devices_) rank_files_.try_emplace(device, folder, device, info);
  if (first_) {
    run_file_.emplace(folder, info);
    run_file_->write_plan(plan_record(run_));
    run_file_->link(run_.schedule.devices(), owners_);
    metrics_.emplace(folder);
    terminal_.emplace(STDERR_FILENO, TerminalStyle::of(STDERR_FILENO),
                      RunLength{trainer.agenda(), run_.basis.test_samples});
    steps_.reserve(static_cast<std::size_t>(trainer.agenda().segment_at(0).last));
  }
  publish();
  for (const auto& [stage, unused] : audits_by_stage_) {
    const DeviceMemory& memory = trainer.device(run_.schedule.owner(stage)).memory();
    audit(stage, memory.parameters(stage, 0), run_.memory.stages[stage].parameter_size);
  }
}

void RunObserver::introduce(const NodeUse& node, int processes) {
  if (!first_) return;
  ranks_.at_files([&] {
    terminal_->lines(describe_start(config_, run_, trainer_->agenda(), node, processes));
    if (const std::string warning = crowding(node); !warning.empty()) terminal_->message(warning);
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

void RunObserver::on_update(int, std::int64_t, int stage, const real* theta, std::int64_t size) {
  if (audits_) audit(stage, theta, size);
}

void RunObserver::audit(int stage, const real* theta, std::int64_t size) {
  StageAudit& audit = audits_by_stage_[stage];
  audit.flat.resize(static_cast<std::size_t>(size));
  copy_to_host(exec_, audit.flat, theta);
  std::span<const real> rest(audit.flat);
  for (std::size_t p = 0; p < audit.names.size(); ++p) {
    std::size_t count = 1;
    for (std::int64_t extent : audit.shapes[p]) count *= static_cast<std::size_t>(extent);
    const std::span<const real> values = rest.first(count);
    audit.values[p].insert(audit.values[p].end(), values.begin(), values.end());
    rest = rest.subspan(count);
  }
}

void RunObserver::on_evaluating(const EvaluationProgress& progress) {
  ranks_.at_files([&] { terminal_->evaluating(progress); });
}

void RunObserver::on_evaluation(const EvaluationRecord& evaluation) {
  last_evaluation_ = evaluation;
  ranks_.at_files([&] {
    keep([&] { metrics_->write(evaluation); });
    terminal_->evaluation(evaluation);
    run_file_->append({.evaluations = {&evaluation, 1}});
  });
}

std::vector<StageReceipts> RunObserver::receipts_of(int device, const Recorder& recorder) {
  std::vector<StageReceipts> result;
  for (int j = 0; j < run_.schedule.rule().stages(); ++j) {
    if (run_.schedule.owner(j) != device) continue;
    digests_[j].clear();
    for (const Receipt& receipt : recorder.receipts()) {
      if (receipt.stage == j) digests_[j].push_back(receipt.digest);
    }
    result.push_back({j, digests_[j]});
  }
  return result;
}

void RunObserver::on_segment_end(int device, const Recorder& recorder) {
  const std::vector<StageReceipts> receipts = receipts_of(device, recorder);
  std::vector<AuditedParameter> audited;
  for (auto& [stage, audit] : audits_by_stage_) {
    if (run_.schedule.owner(stage) != device) continue;
    for (std::size_t p = 0; p < audit.names.size(); ++p)
      audited.push_back({audit.names[p], audit.shapes[p], audit.values[p]});
  }
  ranks_.at_files([&] {
    rank_files_.at(device).append({.actions = recorder.actions(),
                                   .messages = recorder.messages(),
                                   .memory = recorder.memory(),
                                   .receipts = receipts,
                                   .audit = audited},
                                  trainer_->measured(device));
    if (device == 0) append_run_file();
  });
  for (auto& [stage, audit] : audits_by_stage_) {
    if (run_.schedule.owner(stage) != device) continue;
    for (std::vector<real>& values : audit.values) values.clear();
  }
}

void RunObserver::append_samples(std::vector<std::int64_t>& samples) {
  for (const StepRecord& step : steps_) {
    for (int i = 0; i < order_.micro_batches; ++i) {
      const EpochPosition position = order_.locate(step.step, i);
      const std::span<const int> order = sampler_.permutation(position.epoch);
      for (int k = 0; k < order_.micro_batch_size; ++k)
        samples.push_back(order[static_cast<std::size_t>(position.first + k)]);
    }
  }
}

void RunObserver::append_run_file() {
  std::vector<std::int64_t> samples;
  if (audits_) append_samples(samples);
  run_file_->append({.steps = steps_,
                     .samples = samples,
                     .micro_batches = order_.micro_batches,
                     .micro_batch_size = order_.micro_batch_size});
  steps_.clear();
}

void RunObserver::publish() {
  if (failed_) throw *failed_;
  for (auto& [device, file] : rank_files_) file.publish();
  if (!run_file_) return;
  run_file_->publish();
  status_.write({.state = RunState::running, .step = trainer_->steps()});
}

void RunObserver::publish_evaluation() {
  if (failed_) throw *failed_;
  if (!run_file_) return;
  run_file_->publish();
  if (!std::isfinite(last_evaluation_->loss))
    fail(ExitCode::diverged,
         "the test loss after step {} is not a finite number, though all parameters are; lower "
         "train.optimizer.learning_rate or look at the data",
         last_evaluation_->step - 1);
}

void RunObserver::finish() {
  for (auto& [device, file] : rank_files_) file.finish();
  if (run_file_) run_file_->finish();
}

void RunObserver::say(std::string_view text) {
  if (terminal_) terminal_->message(text);
}

}  // namespace carousel
