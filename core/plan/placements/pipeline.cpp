// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/plan/placements/parts.hpp"

namespace carousel::placements {
namespace {

/// When the micro-batches of a pipeline begin, and how long a training step takes.
struct Pace {
  const Rule& rule;

  /// One after the other, two time steps apart. With fewer micro-batches than stages, cyclic rules
  /// keep the offsets of the rule, since its fresh parameters do not come earlier.
  [[nodiscard]] std::int64_t begin(int i) const {
    return rule.cyclic() ? std::max<std::int64_t>(2LL * i, rule.offset(i)) : 2LL * i;
  }
  [[nodiscard]] std::int64_t period() const {
    const std::int64_t n = rule.micro_batches();
    const std::int64_t stages = rule.stages();
    return rule.cyclic() ? 2 * std::max(n, stages) : 2 * (n + stages - 1);
  }
  [[nodiscard]] Pass pass(int i, int j) const {
    const int stages = rule.stages();
    // 1F1B: S - j forwards, before the first backward comes, may follow each other at once.
    const bool warm_up = !rule.cyclic() && i < stages - j;
    return {.micro_batch = i,
            .stage = j,
            .forward_time = (warm_up ? i : begin(i)) + j,
            .backward_time = begin(i) + 2 * stages - 1 - j};
  }
};

/// Stage j on device j, one micro-batch after the other. Cyclic rules never drain the pipeline; dp
/// is 1F1B with a flush between training steps (Narayanan et al. 2021, PipeDream-Flush).
Layout lay_out(const Rule& rule, const ScheduleSpec& spec) {
  const int n = rule.micro_batches();
  const int stages = rule.stages();
  const Pace pace{rule};
  Layout layout{.period_time = pace.period()};
  for (int j = 0; j < stages; ++j) {
    ProgramBuilder builder(layout.period_time);
    BufferCounts counts = counts_of(rule, j, j);
    counts.gradients.assign(n > 1 ? 2 : 1, {{j}});
    for (int i = 0; i < n; ++i) {
      const Pass pass = pace.pass(i, j);
      add_load(builder, pass);
      add_forward(builder, rule, pass);
      add_total_backward(builder, rule, pass, 0, {.sum = 1});
      add_release(builder, pass);
      add_boundaries(builder, spec, pass, {j - 1}, {j + 1 < stages ? j + 1 : -1});
    }
    const std::int64_t ready = pace.pass(n - 1, j).backward_time + 1;
    if (needs_norms(spec)) builder.add(ready, Phase::update, measure(j, 0));
    if (stages > 1) add_norms(builder, spec, 0, ready, pace.period());
    builder.add(needs_norms(spec) ? pace.period() : ready, Phase::update, update(j, 0));
    layout.owner.push_back(j);
    layout.programs.push_back(
        {.first_device = j, .actions = builder.fold(), .buffers = std::move(counts)});
  }
  if (needs_norms(spec)) layout.groups = {layout.owner};
  return layout;
}

}  // namespace

PlacementKind pipeline() {
  return {.placement = Placement::pipeline,
          .name = "pipeline",
          .doc = "a device for each stage.",
          .help =
              "S: a device for every stage. dp runs 1F1B with a flush between steps, cyclic rules "
              "without one.",
          .formulas = {.devices = {"S", "S"},
                       .busy = {"N / (N + S - 1)", "1"},
                       .largest_activations = {"max min(N,S-j) a_j", "max (S - j) a_j"},
                       .held_activations = {"sum min(N,S-j) a_j", "sum (S - j) a_j"},
                       .parameter_copies = {"1", "2"},
                       .optimizer_state = {"P", "P"},
                       .sent = {"N C", "N C"},
                       .longest = {"1", "1"}},
          .devices = [](const ParallelConfig& parallel) { return parallel.stages; },
          .layout = lay_out,
          .traits = {.splits_stages = true,
                     .meets_all = true,
                     .dp_reductions = {Reduction::ordered},
                     .cyclic_reductions = {Reduction::ordered}}};
}

}  // namespace carousel::placements
