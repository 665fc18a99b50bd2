// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a run is planned from: what the deck asks for, borrowed, and what plans follow from besides.

#include <cstdint>
#include <optional>

#include "core/data/config.hpp"
#include "core/data/source.hpp"
#include "core/model/kernels.hpp"
#include "core/model/model.hpp"
#include "core/plan/engine_config.hpp"
#include "core/plan/machine.hpp"
#include "core/plan/rule.hpp"
#include "core/plan/stage_memory.hpp"
#include "core/train/config.hpp"

namespace carousel {

/// What a plan follows from beside the deck, so that it can be made again when the data set is gone
/// and on another machine.
struct PlanBasis {
  SourceSpec source;
  TargetSpec target;
  std::int64_t train_samples = 0;
  std::int64_t test_samples = 0;
  int real_bytes = 0;                          // of one number, by the build
  int block = 1;                               // channels side by side in images, by the build
  bool staged_messages = false;                // messages pass through host memory
  VendorKernels vendor = VendorKernels::none;  // by the build and the deck
  int token_bytes = 0;                      // that a device holds for messages that carry nothing
  bool copies_input = false;                // inputs are copied to a device before they are shown
  int rider_parts = carousel::rider_parts;  // 1 in runs from before sums were doubles
  bool targets_everywhere = false;          // all devices stage them, as in earlier runs

  bool operator==(const PlanBasis&) const = default;
};

/// The tables of a deck that plans follow from, and how its messages travel; borrowed.
struct PlannedDeck {
  const ModelConfig& model;
  const TaskConfig& task;
  const DataConfig& data;
  const ParallelConfig& parallel;
  const TrainConfig& train;
  const EngineConfig& engine;
  const std::optional<Machine>& machine;
  bool rounds = false;               // messages are exchanged in rounds
  std::int64_t largest_message = 0;  // bytes that one message may have; 0: any number
};

}  // namespace carousel
