// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The table of the paper (arXiv 2403.08837, table 1) for one model: all placements, dp beside a
// cyclic rule, every number with its formula. It prints estimates and makes none.

#include <span>
#include <string>
#include <vector>

#include "core/forecast/estimate.hpp"

namespace carousel {

/// What there is to compare with a plan: for every placement dp as it is best practice (all-reduce
/// and collectives; on one device all micro-batches together) and the cyclic rule of `parallel`,
/// or cdp-v2 where that is dp. Cyclic rules are left out where N and S forbid them. If `parallel`
/// cuts stages into shards, so do all that can.
[[nodiscard]] std::vector<ParallelConfig> alternatives(const ParallelConfig& parallel);

/// What estimates are compared with.
struct ComparisonBasis {
  std::int64_t model_bytes = 0;        // P, a gradient of all parameters as it travels
  std::int64_t parameter_bytes = 0;    // all parameters as they are stored and travel
  std::int64_t micro_batch_bytes = 0;  // A, the activations of one micro-batch
  // The same configurations in fp32, in the same order; none where they are that themselves.
  std::vector<Estimate> in_fp32 = {};
};

/// Estimates of such configurations, at 80 columns.
[[nodiscard]] std::string compare(std::span<const Estimate> estimates,
                                  const ComparisonBasis& basis);

/// One line per estimate, each with its label, such as the values of a sweep.
struct LabelledEstimate {
  std::string label;
  Estimate estimate;
};
[[nodiscard]] std::string tabulate(const std::string& heading,
                                   std::span<const LabelledEstimate> rows);

}  // namespace carousel
