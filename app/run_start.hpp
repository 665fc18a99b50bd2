// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a training begins: anew, or with what a checkpoint holds. Decided by rank 0 from the run
// folder and `run.resume`; it changes nothing on disk.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "app/ranks.hpp"
#include "app/requested_run.hpp"
#include "app/run_config.hpp"
#include "core/record/run_file.hpp"
#include "core/state/checkpoint.hpp"
#include "core/train/device.hpp"

namespace carousel {

struct RunStart {
  std::string checkpoint = {};   // to go on from; empty: from first values
  int part = 0;                  // of the run in the folder, which is gone on with if that is not 0
  bool replaces = false;         // a run in the folder makes room
  bool done = false;             // nothing is left to be trained
  bool evaluates = false;        // what the last part did not come to
  bool out_of_patience = false;  // why it is done; on rank 0
  std::int64_t step = 0;         // of the checkpoint
  double seconds = 0;            // that the run took until then
  RunHistory history = {};       // on rank 0
  // Of the evaluations whose checkpoints are there, the best one; on rank 0.
  std::int64_t best_step = -1;
  double best_score = -std::numeric_limits<double>::infinity();
};

/// Looks at the run folder and at `run.resume`, on rank 0. Error(usage) where a run is in the way,
/// or where the deck asks for another model, rule, seed or data than those of the run to go on
/// with; Error(diverged) if that run diverged.
/// `fingerprint` is that of the data set.
[[nodiscard]] RunStart find_start(const RunConfig& config, const DataSet& dataset,
                                  std::uint64_t fingerprint, bool overwrite);

/// What rank 0 has found, on every rank, less the history. Collective.
[[nodiscard]] RunStart shared_start(const RunStart& of_first, const RunConfig& config,
                                    const Ranks& ranks);

/// What training begins with. `checkpoint` is that of the start, `weights` that of train.start;
/// both may be null, and are borrowed.
[[nodiscard]] Beginning beginning_of(const RunConfig& config, const Model& model,
                                     const Checkpoint* checkpoint, const Checkpoint* weights);

}  // namespace carousel
