// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/placements/parts.hpp"

namespace carousel::placements {
namespace {

/// All micro-batches on one device.
Layout lay_out(const Rule& rule, const ScheduleSpec& spec) {
  const int n = rule.micro_batches();
  const int stages = rule.stages();
  // Passes of a worker cannot run at the same time; then workers do not, either.
  const bool one_by_one =
      rule.passes() > 1 || (!rule.cyclic() && spec.parallel.order == Order::accumulate);
  const std::int64_t cycle = 2LL * stages;
  Layout layout{.period_time = one_by_one ? cycle * n : cycle};
  layout.owner.assign(stages, 0);
  ProgramBuilder builder(layout.period_time);
  BufferCounts counts = counts_of(rule, 0, stages - 1);

  for (int j = 0; j < stages; ++j) counts.gradients.push_back({{j}});
  // Sums of a worker are of all stages at once where it has several passes.
  const bool sums = rule.passes() > 1 && rule.workers() > 1;
  for (int j = 0; sums && j < stages; ++j) counts.gradients.push_back({{j}});
  const auto own = static_cast<int>(counts.gradients.size());
  if (n > 1) counts.gradients.push_back({counts.owned});
  const auto begin = [&](int i) { return one_by_one ? cycle * i : rule.offset(i); };
  for (int i = 0; i < n; ++i) {
    add_load(builder, {.micro_batch = i, .forward_time = begin(i)});
    for (int j = stages - 1; j >= 0; --j) {
      const Pass pass{.micro_batch = i,
                      .stage = j,
                      .forward_time = begin(i) + j,
                      .backward_time = begin(i) + cycle - 1 - j};
      add_forward(builder, rule, pass);
      add_total_backward(builder, rule, pass, j, {.sum = sums ? stages + j : own, .pass = own});
      add_release(builder, pass);
    }
  }
  const std::int64_t end = begin(n - 1) + cycle;
  for (int j = stages - 1; needs_norms(spec) && j >= 0; --j)
    builder.add(end - j, Phase::update, measure(j, j));
  for (int j = stages - 1; j >= 0; --j)
    builder.add(needs_norms(spec) ? end : end - j, Phase::update, update(j, j));
  layout.programs.push_back({.actions = builder.fold(), .buffers = std::move(counts)});
  return layout;
}

}  // namespace

PlacementKind single() {
  return {.placement = Placement::single,
          .name = "single",
          .doc = "one device runs everything.",
          .help = "1, for every N and S.",
          .formulas = {.devices = {"1", "1"},
                       .busy = {"1", "1"},
                       .largest_activations = {"N A", "sum R (S - j) a_j"},
                       .held_activations = {"N A", "sum R (S - j) a_j"},
                       .parameter_copies = {"1", "2"},
                       .optimizer_state = {"P", "P"},
                       .sent = {"0", "0"},
                       .longest = {"0", "0"}},
          .devices = [](const ParallelConfig&) { return 1; },
          .layout = lay_out,
          .traits = {.one_device = true,
                     .has_passes = true,
                     .meets_all = true,
                     .has_orders = true,
                     .dp_reductions = {Reduction::ordered},
                     .cyclic_reductions = {Reduction::ordered}}};
}

}  // namespace carousel::placements
