// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Guesses what a misspelt name was meant to be. It knows nothing about decks.

#include <string>
#include <string_view>
#include <vector>

namespace carousel {

/// The fewest insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`
/// (Damerau-Levenshtein distance, optimal string alignment).
[[nodiscard]] int edit_distance(std::string_view a, std::string_view b);

/// " (did you mean NAME?)" for the most similar of `names`; empty when none is similar.
[[nodiscard]] std::string did_you_mean(std::string_view name,
                                       const std::vector<std::string>& names);

}  // namespace carousel
