// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes the run folder of an invented run of two steps, two stages and two devices.

#include <filesystem>
#include <string>
#include <vector>

#include "core/record/metrics_log.hpp"
#include "core/record/run_file.hpp"
#include "core/record/run_folder.hpp"

namespace carousel::testing {

inline RunInfo sample_info() {
  return {.program_version = "0.1.0",
          .git_hash = "0123abc",
          .libraries = "HDF5",
          .start_time = "2026-01-02T03:04:05Z",
          .seed = 42,
          .deck = "[run]\nname = \"sample\"\n"};
}

inline PlanRecord sample_plan() {
  PlanRecord plan;
  plan.rule = "cdp-v2";
  plan.placement = "replicated";
  plan.order = "together";
  plan.devices = 2;
  plan.micro_batches = 2;
  plan.stages = 2;
  plan.bytes.resize(2);
  plan.bytes[0][static_cast<std::size_t>(Category::activations)] = 3072;
  plan.bytes[1][static_cast<std::size_t>(Category::activations)] = 1024;
  plan.messages_per_step = {3, 2};
  plan.bytes_per_step = {300, 200};
  plan.collective_bytes_per_step = 512;
  plan.stage_layers = {"flatten .. 0", "1 .. loss"};
  plan.stage_activations = {1024, 1024};
  plan.metrics = {"accuracy"};
  plan.activation_bytes_together = 8192;
  plan.activation_bytes_accumulate = 2048;
  plan.basis = {.source = {.input = {NumberType::int32, {1, 4, 5}},
                           .target = {NumberType::int32, {1, 7, 8}},
                           .shown = {1, 2, 3},
                           .reader_bytes = 77,
                           .target_reader_bytes = 78},
                .target = TargetSpec::of_pixels(4, {1, 7, 8}),
                .train_samples = 8,
                .test_samples = 5,
                .real_bytes = sizeof(real),
                .block = 16,
                .staged_messages = true,
                .vendor = VendorKernels::graphs,
                .token_bytes = 2};
  return plan;
}

/// Of a run that has just begun.
inline RunHistory sample_history() {
  return {.steps = {}, .evaluations = {}, .parts = {PartRecord{.devices = 2}}};
}

/// Writes everything, segments of one step; `receipt` is stage 1's digest after step 1.
inline void write_sample_run(const std::filesystem::path& folder, std::uint64_t receipt,
                             int steps_made = 2) {
  create_run_folder(folder, false);
  RunFile run(folder, {sample_info()}, {"accuracy"}, sample_history());
  run.write_plan(sample_plan());
  run.link(2, std::vector<StageOwner>{{1, {"/parameters/0.weight"}}, {0, {}}});
  RankFile first(folder, 0, {sample_info()}), second(folder, 1, {sample_info()});
  MetricsLog log(folder, {"accuracy"});
  for (int t = 0; t < steps_made; ++t) {
    const std::vector<StepRecord> steps{{t, 0, 2.5 - t, {0.5}, 0.05, 1.0 + t, 64}};
    const EvaluationRecord evaluation{t + 1, 0, 2.0 - t, {0.75 + 0.125 * t}};
    const std::vector<std::int64_t> samples{10 * t, 10 * t + 1, 10 * t + 2, 10 * t + 3};
    log.write(steps[0]);
    log.write(evaluation);
    run.append(steps);
    run.append(evaluation);

    const std::vector<ActionRecord> actions{{"forward", t, 0, 0, -1, t - 1, 0.5, 0.75}};
    const std::vector<MessageRecord> messages{{"total", "send", t, 1, -1, 0, 1, 100, 0, 1, 0.25}};
    const std::vector<MemoryRecord> memory{{0.75, t, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}};
    const std::vector<std::uint64_t> digest0{100U + static_cast<unsigned>(t)};
    const std::vector<std::uint64_t> digest1{t == 0 ? 200 : receipt};
    const std::vector<StageReceipts> kept_first{{1, digest1}}, kept_second{{0, digest0}};
    const std::vector<real> values{real(t), 1, 2, 3, 4, 5};
    const std::vector<AuditedTensor> audit{{"/parameters/0.weight", {2, 3}, values}};
    MeasuredRecord measured{.messages_sent = 3 * (t + 1),
                            .bytes_sent = 300 * (t + 1),
                            .first_step_seconds = 0.5,
                            .data_wait = 0.25};
    measured.peak_bytes[static_cast<std::size_t>(Category::activations)] = 2048;
    const SegmentRecord segment{t, t + 1};
    first.append({segment, actions, messages, memory, kept_first, {}, {samples, 2, 2}}, measured);
    second.append({segment, {}, {}, {}, kept_second, audit, {}}, measured);
  }
  run.publish();
  for (RankFile* file : {&first, &second}) file->publish();
  StatusFile(folder).write({RunState::done, 0, "", steps_made});
}

}  // namespace carousel::testing
