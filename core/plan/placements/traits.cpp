// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/placements/traits.hpp"

#include <algorithm>

#include "core/plan/pieces.hpp"
#include "core/plan/placements/kinds.hpp"

namespace carousel {

const PlacementTraits& traits_of(Placement placement) {
  return kind_of(placement).traits;
}

bool has_reduction(const ParallelConfig& parallel, Reduction reduction) {
  const PlacementTraits& traits = traits_of(parallel.placement);
  const bool cyclic = parallel.rule != RuleKind::dp;
  const auto& reductions = cyclic ? traits.cyclic_reductions : traits.dp_reductions;
  if (std::ranges::find(reductions, reduction) == reductions.end()) return false;
  if (parallel.shards)
    return reduction == Reduction::ordered ||
           (reduction == Reduction::fast && shards_of(parallel) > 1);
  return !cyclic || reduction != Reduction::fast || parallel.workers() > parallel.stages;
}

ActionKind dp_sum_of(const ParallelConfig& parallel) {
  return parallel.reduction == Reduction::owner ? ActionKind::reduce
                                                : traits_of(parallel.placement).dp_sum;
}

bool has_fast_sums(const ParallelConfig& parallel) {
  return has_reduction(parallel, Reduction::fast);
}

bool has_prediction(const ParallelConfig& parallel) {
  return parallel.rule == RuleKind::cdp_v1 ||
         (parallel.rule == RuleKind::cdp_v2 && !parallel.shards &&
          !traits_of(parallel.placement).passes_parameters);
}

bool needs_whole_slots(RuleKind rule, Placement placement) {
  return rule != RuleKind::dp && traits_of(placement).whole_slots;
}

int devices_of(const ParallelConfig& parallel) {
  return kind_of(parallel.placement).devices(parallel);
}

}  // namespace carousel
