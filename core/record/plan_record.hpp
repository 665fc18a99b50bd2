// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A plan as it is stored in a run file, beside what is measured. It plans nothing itself.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/category.hpp"
#include "core/prepare/prepare.hpp"

namespace carousel {

/// What the plan predicts, for all devices; stored beside what is measured.
struct PlanRecord {
  std::string rule;       // "cdp-v2"
  std::string placement;  // "single"
  std::string order;      // "together" or "accumulate", of dp on one device
  int devices = 0;
  int micro_batches = 0;
  int stages = 0;
  std::vector<CategoryBytes> bytes;  // [device], peak
  // [device] sent in a steady training step; rounded means where a team takes turns
  std::vector<std::int64_t> messages_per_step;
  std::vector<std::int64_t> bytes_per_step;
  std::vector<std::string> stage_layers;        // [stage], names of first and last layer
  std::vector<std::int64_t> stage_activations;  // [stage], bytes that one micro-batch holds: a_j
  // What the library sends for all collectives of a steady training step, as rings and chains;
  // files of the first version do not tell.
  std::optional<std::int64_t> collective_bytes_per_step;
  std::int64_t activation_bytes_together = 0;    // dp, all micro-batches at once: N A
  std::int64_t activation_bytes_accumulate = 0;  // dp, one after the other: A
  std::vector<std::string> metrics;              // names, each a column of steps and evaluations
  std::optional<PlanBasis> basis;                // files of the first version do not have it
};

[[nodiscard]] PlanRecord plan_record(const PreparedRun& run);

}  // namespace carousel
