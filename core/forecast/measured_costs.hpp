// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How long the actions of a run took, to predict other plans of the same stages.

#include <span>
#include <string>
#include <vector>

#include "core/plan/costs.hpp"
#include "core/train/records.hpp"

namespace carousel {

/// Medians over `devices` and recorded steps, without the first two steps of the run if there are
/// more; [stage]. What the run never did (dp's collectives add no gradients by themselves), or did
/// piece by piece because it cut its stages, keeps the seconds of `otherwise`. Error(bad_data),
/// which begins with the name of the run, when a stage has no forward or no backward.
[[nodiscard]] std::vector<StageSeconds> measured_seconds(
    const std::string& run, std::span<const std::vector<ActionRecord>> devices,
    std::vector<StageSeconds> otherwise, bool cuts_stages = false);

}  // namespace carousel
