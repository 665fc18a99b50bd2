// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the actions of a run took, to predict other plans of the same stages with.

#include <vector>

#include "core/io/run_reader.hpp"
#include "core/plan/costs.hpp"

namespace carousel {

/// Medians over devices and recorded steps, the first two of the run left out where there are more;
/// [stage]. What the run never did (dp's collectives add no gradients by themselves) keeps the
/// seconds of `otherwise`. Error(bad_data) when a stage has no forward or no backward.
[[nodiscard]] std::vector<StageSeconds> measured_seconds(const RunSummary& run,
                                                         std::vector<StageSeconds> otherwise);

}  // namespace carousel
