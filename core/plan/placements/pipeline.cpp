// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/plan/placements/parts.hpp"

namespace carousel::placements {
namespace {

/// Sums of gradients where all micro-batches of a stage meet on one device: the first one writes
/// the sum, the others a buffer of their own that is added to it.
void add_summed_backward(ProgramBuilder& builder, const Rule& rule, const Pass& pass, int sum,
                         int own) {
  const bool first = pass.micro_batch == 0;
  add_backward(builder, rule, pass, first ? sum : own);
  if (!first)
    builder.add(pass.backward_time, Phase::compute,
                accumulate(pass.micro_batch, pass.stage, sum, own));
}

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

}  // namespace

Layout single(const Rule& rule, const ScheduleSpec& spec) {
  const int n = rule.micro_batches();
  const int stages = rule.stages();
  const bool one_by_one = !rule.cyclic() && spec.parallel.order == Order::accumulate;
  const std::int64_t cycle = 2LL * stages;
  Layout layout{.period_time = one_by_one ? cycle * n : cycle};
  layout.owner.assign(stages, 0);
  ProgramBuilder builder(layout.period_time);
  BufferCounts counts = counts_of(rule, 0, stages - 1);

  for (int j = 0; j < stages; ++j) counts.gradients.push_back({j});
  if (n > 1) counts.gradients.push_back(counts.owned);
  const auto begin = [&](int i) { return one_by_one ? cycle * i : rule.offset(i); };
  for (int i = 0; i < n; ++i) {
    add_load(builder, {.micro_batch = i, .forward_time = begin(i)});
    for (int j = stages - 1; j >= 0; --j) {
      const Pass pass{.micro_batch = i,
                      .stage = j,
                      .forward_time = begin(i) + j,
                      .backward_time = begin(i) + cycle - 1 - j};
      add_forward(builder, rule, pass);
      add_summed_backward(builder, rule, pass, j, stages);
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

Layout pipeline(const Rule& rule, const ScheduleSpec& spec) {
  const int n = rule.micro_batches();
  const int stages = rule.stages();
  const Pace pace{rule};
  Layout layout{.period_time = pace.period()};
  for (int j = 0; j < stages; ++j) {
    ProgramBuilder builder(layout.period_time);
    BufferCounts counts = counts_of(rule, j, j);
    counts.gradients.assign(n > 1 ? 2 : 1, {j});
    for (int i = 0; i < n; ++i) {
      const Pass pass = pace.pass(i, j);
      add_load(builder, pass);
      add_forward(builder, rule, pass);
      add_summed_backward(builder, rule, pass, 0, 1);
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

const PlacementTraits& single_traits() {
  static const PlacementTraits traits{.placement = Placement::single,
                                      .devices = [](const ParallelConfig&) { return 1; },
                                      .one_device = true,
                                      .meets_all = true,
                                      .has_orders = true,
                                      .dp_reductions = {Reduction::ordered},
                                      .cyclic_reductions = {Reduction::ordered}};
  return traits;
}

const PlacementTraits& pipeline_traits() {
  static const PlacementTraits traits{
      .placement = Placement::pipeline,
      .devices = [](const ParallelConfig& parallel) { return parallel.stages; },
      .splits_stages = true,
      .meets_all = true,
      .dp_reductions = {Reduction::ordered},
      .cyclic_reductions = {Reduction::ordered}};
  return traits;
}

}  // namespace carousel::placements
