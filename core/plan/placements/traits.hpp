// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a placement is, as facts that its own file states, so that nobody else asks which one it is.
// All else about it is in kinds.hpp.

#include <vector>

#include "core/plan/action.hpp"
#include "core/plan/rule.hpp"

namespace carousel {

struct PlacementTraits {
  /// A single device has all stages of all micro-batches.
  bool one_device = false;
  /// A worker may take several micro-batches, one after the other.
  bool has_passes = false;
  /// A device has a single stage, so that activations travel between devices.
  bool splits_stages = false;
  /// All micro-batches of a stage meet on one device. Its buffers are taken in turn by micro-batch,
  /// elsewhere by training step.
  bool meets_all = false;
  /// A device holds one micro-batch at a time, whether it computes or not.
  bool holds_one = false;
  /// Parameters travel to the devices that read them.
  bool passes_parameters = false;
  /// Under cyclic rules N must be a multiple of S: devices stand for slots, each R = N / S times.
  bool whole_slots = false;
  /// Stages may travel in pieces, and be cut into shards.
  bool cuts_stages = false;
  /// With shards, sums of cdp-v1 may run beside the next training step.
  bool sums_late = false;
  /// Under cyclic rules tokens pace the devices.
  bool paced = false;
  /// Slack gives totals of cyclic rules a time step to spare. Elsewhere what is made of a total is
  /// read, or leaves, in the next time step, with any slack.
  bool totals_may_wait = false;
  /// dp may run its micro-batches together or one after the other.
  bool has_orders = false;
  std::vector<Reduction> dp_reductions;      // ordered first
  std::vector<Reduction> cyclic_reductions;  // fast only where slots have several micro-batches
  /// The collective that sums the gradients of dp with `fast`, and whether one sums all stages.
  ActionKind dp_sum = ActionKind::all_reduce;
  bool sums_all_stages = false;
  /// Collectives of dp are numbered by stage: a group has all devices of one stage.
  bool groups_by_stage = false;
};

[[nodiscard]] const PlacementTraits& traits_of(Placement placement);

/// Whether the gradients of this rule may be summed so.
[[nodiscard]] bool has_reduction(const ParallelConfig& parallel, Reduction reduction);
/// The collective that sums gradients of dp where collectives do.
[[nodiscard]] ActionKind dp_sum_of(const ParallelConfig& parallel);
/// Whether there are devices whose gradients a collective may sum: those of all micro-batches for
/// dp, those of a slot for cyclic rules.
[[nodiscard]] bool has_fast_sums(const ParallelConfig& parallel);
/// Whether what is read in place of old parameters may be predicted: under cdp-v1 everywhere, under
/// cdp-v2, which reads theta, too, where stages go whole and stay.
[[nodiscard]] bool has_prediction(const ParallelConfig& parallel);
/// Whether N must be a multiple of S.
[[nodiscard]] bool needs_whole_slots(RuleKind rule, Placement placement);
/// Devices of a plan.
[[nodiscard]] int devices_of(const ParallelConfig& parallel);

}  // namespace carousel
