// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Between a trainer and its checkpoints: which tensor of one is which tensor of the other.

#include <set>
#include <string>

#include "app/ranks.hpp"
#include "app/requested_run.hpp"
#include "app/run_config.hpp"
#include "core/state/checkpoint.hpp"
#include "core/train/trainer.hpp"

namespace carousel {

/// What a run writes on when its numbers are no longer finite.
inline constexpr const char* divergence_advice =
    "lower train.optimizer.learning_rate or look at the data";

/// What a run learns from, as its checkpoints tell.
struct TrainingData {
  std::uint64_t fingerprint = 0;
  InputRecord inputs = {};
};

/// The group that has a tensor, in a checkpoint and in /audit of a run: "/optimizer/momentum/".
[[nodiscard]] std::string group_of(StatePart part, int state, const OptimizerConfig& optimizer);

/// What all devices have learned becomes the newest checkpoint: each writes what it owns.
/// Collective.
void save_checkpoint(const RunConfig& config, const PreparedRun& run, const TrainingData& data,
                     const Ranks& ranks, const Trainer& trainer);

/// The tensors of a checkpoint for whoever begins with it; borrowed.
[[nodiscard]] StateSource source_of(const Checkpoint& checkpoint, const OptimizerConfig& optimizer);

/// The same for a network that is used: its parameters are averages, if there are some and it is
/// not to be without them.
[[nodiscard]] StateSource used_state(const Checkpoint& checkpoint, const OptimizerConfig& optimizer,
                                     bool without_ema);

/// The parameters, or their averages if there are some, and buffers of a checkpoint as first ones
/// of a training; those named in `anew` begin with what the seed gives. Borrowed.
[[nodiscard]] StateSource weights_of(const Checkpoint& checkpoint, std::uint64_t seed,
                                     const std::set<std::string>& anew);

}  // namespace carousel
