// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/record/plan_record.hpp"

#include <fmt/core.h>

#include "core/forecast/routes.hpp"

namespace carousel {

PlanRecord plan_record(const PreparedRun& run) {
  const Rule& rule = run.schedule.rule();
  const ParallelConfig& parallel = run.schedule.parallel();
  PlanRecord record;
  record.rule = to_string(parallel.rule);
  record.placement = to_string(parallel.placement);
  record.order = to_string(parallel.order);
  record.devices = run.schedule.devices();
  record.micro_batches = rule.micro_batches();
  record.stages = rule.stages();
  for (int d = 0; d < record.devices; ++d) {
    const Traffic sent = traffic(run.schedule, d);
    record.bytes.push_back(run.memory.devices[d].peak);
    const std::int64_t shares = run.schedule.program(d).team;
    record.messages_per_step.push_back((sent.messages + shares / 2) / shares);
    record.bytes_per_step.push_back((sent.bytes + shares / 2) / shares);
  }
  std::int64_t collectives = 0;
  for (const Route& route : routes_of(run.schedule)) {
    if (route.group >= 0) collectives += route.sent.bytes;
  }
  record.collective_bytes_per_step = collectives;
  for (int j = 0; j < record.stages; ++j) {
    const LayerSpec& first = run.model.layers[run.partition.first[j]];
    const LayerSpec& last = run.model.layers[run.partition.first[j + 1] - 1];
    record.stage_layers.push_back(fmt::format("{} .. {}", first.label(), last.label()));
    record.stage_activations.push_back(run.memory.stages[j].frame_bytes);
  }
  record.metrics = names_of(run.model.metrics());
  record.basis = run.basis;
  const Baselines baselines = activation_baselines(run.memory.stages, record.micro_batches);
  record.activation_bytes_together = baselines.together;
  record.activation_bytes_accumulate = baselines.accumulate;
  return record;
}

}  // namespace carousel
