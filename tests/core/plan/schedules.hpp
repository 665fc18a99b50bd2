// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Schedules that tests of the planner share: every variant of a rule and a placement, their lists
// of actions. It tests nothing itself.

#include <fmt/core.h>

#include <string>
#include <vector>

#include "core/plan/pieces.hpp"
#include "core/plan/placements/kinds.hpp"
#include "core/plan/schedule.hpp"

namespace carousel::testing {

using Lists = std::vector<std::vector<Action>>;

/// Stages of different sizes, so that mistaken ones show in the bytes.
inline std::vector<std::int64_t> message_bytes(int stages) {
  std::vector<std::int64_t> bytes;
  for (int j = 0; j < stages; ++j) bytes.push_back(64 * (j + 1));
  return bytes;
}

inline ParallelConfig parallel(RuleKind rule, Placement placement, int n, int stages,
                               int slack = 0) {
  ParallelConfig config;
  config.rule = rule;
  config.placement = placement;
  config.micro_batches = n;
  config.stages = stages;
  config.slack = slack;
  return config;
}

/// Pieces of a stage, all of them of other sizes, and some of none.
inline std::vector<PieceBytes> piece_bytes(const ParallelConfig& config, int stage) {
  std::vector<PieceBytes> pieces;
  const int chunks = 1 + stage % config.chunks;
  for (int p = 0; p < chunks * shards_of(config); ++p) {
    const std::int64_t bytes = p > 0 && (p + stage) % 3 == 0 ? 0 : 64 * (1 + p + stage);
    pieces.push_back(
        {.gradients = bytes, .parameters = bytes / 2, .norms = config.chunks > 1 ? bytes / 8 : 0});
  }
  return pieces;
}

/// `norms`: updates wait for the norms of all stages, which only dp can do.
inline Schedule schedule_of(const ParallelConfig& config, bool norms = false, bool rounds = false) {
  ScheduleSpec spec{config, message_bytes(config.stages)};
  // Parameters may be smaller than their gradients.
  for (const std::int64_t bytes : spec.message_bytes) spec.parameter_bytes.push_back(bytes / 2);
  for (int j = 0; has_pieces(config) && j < config.stages; ++j)
    spec.pieces.push_back(piece_bytes(config, j));
  spec.rounds = rounds;
  if (norms) spec.norm_bytes = 64;
  for (int j = 0; j < config.stages; ++j) {
    spec.activation_bytes.push_back(64 * (100 + j));
    spec.d_activation_bytes.push_back(64 * (200 + j));
  }
  return Schedule(spec);
}

/// All that a deck can ask of this placement, N, S and k, slack 0 .. S k included.
inline std::vector<ParallelConfig> variants(Placement placement, int n, int stages,
                                            int passes = 1) {
  std::vector<ParallelConfig> all;
  if (passes > 1 && !traits_of(placement).has_passes) return all;
  const auto parallel = [&](RuleKind rule, int slack = 0) {
    ParallelConfig config = testing::parallel(rule, placement, n, stages, slack);
    config.passes = passes;
    return config;
  };
  const ParallelConfig dp = parallel(RuleKind::dp);
  all.push_back(dp);
  if (traits_of(placement).has_orders) {
    all.push_back(dp);
    all.back().order = Order::accumulate;
  }
  for (const Reduction reduction : {Reduction::fast, Reduction::overlapped, Reduction::owner}) {
    if (!has_reduction(dp, reduction)) continue;
    all.push_back(dp);
    all.back().reduction = reduction;
  }
  if (needs_whole_slots(RuleKind::cdp_v1, placement) && n % stages != 0) return all;
  all.push_back(parallel(RuleKind::cdp_v1));
  for (int slack = 0; slack <= stages * passes; ++slack) {
    all.push_back(parallel(RuleKind::cdp_v2, slack));
    if (!has_reduction(all.back(), Reduction::local)) continue;
    all.push_back(all.back());
    all.back().reduction = Reduction::local;
  }
  const std::size_t ordered = all.size();
  for (std::size_t k = 0; k < ordered; ++k) {
    ParallelConfig fast = all[k];
    fast.reduction = Reduction::fast;
    const bool adds =
        fast.rule != RuleKind::dp && all[k].reduction == Reduction::ordered && !has_pieces(all[k]);
    if (adds && has_fast_sums(fast)) all.push_back(fast);
  }
  return all;
}

inline std::vector<ParallelConfig> variants(int n, int stages, int passes = 1) {
  std::vector<ParallelConfig> all;
  for (const PlacementKind& kind : placement_kinds()) {
    const std::vector<ParallelConfig> some = variants(kind.placement, n, stages, passes);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

/// And those whose stages are cut.
inline std::vector<ParallelConfig> all_variants(int n, int stages, int passes = 1) {
  std::vector<ParallelConfig> all = variants(n, stages, passes);
  const std::size_t whole = all.size();
  for (std::size_t k = 0; k < whole; ++k) {
    ParallelConfig cut = all[k];
    if (!traits_of(cut.placement).cuts_stages || cut.reduction != Reduction::ordered) continue;
    cut.shards = true;
    const auto add = [&] {
      const bool joint = cut.rule == RuleKind::dp || cut.sums == Sums::late;
      if (!joint && cut.workers() % stages != 0) return;
      all.push_back(cut);
      all.back().reduction = Reduction::fast;
      if (!has_fast_sums(all.back())) all.pop_back();
      all.push_back(cut);
    };
    add();
    if (cut.rule == RuleKind::dp) cut.updates = Updates::together;
    if (cut.rule == RuleKind::cdp_v1 && traits_of(cut.placement).sums_late) cut.sums = Sums::late;
    cut.chunks = 3;
    add();
  }
  return all;
}

inline std::string describe(const ParallelConfig& config) {
  return fmt::format(
      "{} {} {} {} N = {}, k = {}, S = {}, slack {}{}, chunks {}", to_string(config.rule),
      to_string(config.placement), to_string(config.order), to_string(config.reduction),
      config.micro_batches, config.passes, config.stages, config.slack,
      config.shards
          ? fmt::format(" in shards, {}, {}", to_string(config.updates), to_string(config.sums))
          : "",
      config.chunks);
}

inline Lists lists_of(const Schedule& schedule, const Segment& segment) {
  return schedule.lists(segment);
}

}  // namespace carousel::testing
