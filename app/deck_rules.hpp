// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rules between keys of several tables of a deck. Whether the model fits
// the data or the plan fits the machine is not decided here.

#include <vector>

#include "app/run_config.hpp"
#include "core/deck/row.hpp"

namespace carousel {

/// Values without effect beyond the conditions of the schema.
[[nodiscard]] std::vector<NoEffect> values_without_effect(const RunConfig& config);

/// Throws Error(usage) with the place in the deck for values that contradict each other.
void check_deck_rules(const RunConfig& config);

}  // namespace carousel
