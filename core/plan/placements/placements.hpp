// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Two functions per placement: what its devices do in one training step, used by Schedule alone,
// and what everybody may know of it.

#include <cstdint>
#include <vector>

#include "core/plan/placements/traits.hpp"
#include "core/plan/program.hpp"
#include "core/plan/rule.hpp"

namespace carousel {

/// What a schedule is a function of, beside the rule. Bytes are those of one message.
struct ScheduleSpec {
  ParallelConfig parallel;
  std::vector<std::int64_t> message_bytes = {};       // [S] a stage's gradient
  std::vector<std::int64_t> parameter_bytes = {};     // [S] its parameters; empty: the same
  std::vector<std::int64_t> activation_bytes = {};    // [S] what crosses the cut behind a stage
  std::vector<std::int64_t> d_activation_bytes = {};  // [S] its gradients
  // The norms of all stages, where no update may begin before they are known; dp only. 0: none.
  std::int64_t norm_bytes = 0;
  std::int64_t rider_bytes = 0;  // of what rides with stage 0, where it travels alone
  bool rounds = false;           // messages are exchanged in rounds, see core/plan/rounds.hpp
};

namespace placements {

/// The devices of a placement.
struct Layout {
  std::int64_t period_time = 0;  // time steps
  int turns = 1;                 // micro-batches that a team takes per training step
  std::vector<Program> programs = {};
  std::vector<int> owner = {};                // [S] the device that reports on a stage
  std::vector<std::vector<int>> groups = {};  // devices of each group of the collectives
};

/// The devices of the placement that `spec` names.
[[nodiscard]] Layout layout_of(const Rule& rule, const ScheduleSpec& spec);

/// All micro-batches on one device.
[[nodiscard]] Layout single(const Rule& rule, const ScheduleSpec& spec);

/// Micro-batch i on device i. Cyclic rules: partial sums go from i to i + 1, totals from N - 1 to
/// the stage's owner, new parameters from the owner around the ring. dp: every device updates;
/// partial sums from i to i + 1 and totals around to all, or one all-reduce at the end.
[[nodiscard]] Layout replicated(const Rule& rule, const ScheduleSpec& spec);

/// Stage j on device j, one micro-batch after the other. Cyclic rules never drain the pipeline; dp
/// is 1F1B with a flush between training steps (Narayanan et al. 2021, PipeDream-Flush).
[[nodiscard]] Layout pipeline(const Rule& rule, const ScheduleSpec& spec);

/// One stage of one micro-batch on a device at a time. dp: N S devices. Cyclic rules: S - j devices
/// per replica take the micro-batches of stage j in turn.
[[nodiscard]] Layout model(const Rule& rule, const ScheduleSpec& spec);

/// Micro-batch i on device i, parameters and optimizer state of a stage on its owner alone (ZeRO,
/// Rajbhandari et al. 2020, stage 3). dp: broadcast before every pass. Cyclic rules: two copies,
/// for forward and for backward, go from micro-batch to micro-batch.
[[nodiscard]] Layout sharded(const Rule& rule, const ScheduleSpec& spec);

[[nodiscard]] const PlacementTraits& single_traits();
[[nodiscard]] const PlacementTraits& replicated_traits();
[[nodiscard]] const PlacementTraits& pipeline_traits();
[[nodiscard]] const PlacementTraits& model_traits();
[[nodiscard]] const PlacementTraits& sharded_traits();

}  // namespace placements
}  // namespace carousel
