// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pages of `carousel help TOPIC` that are no help on a command: what a run writes, how it fails,
// what rules and placements do. Plain text at 80 columns; the keys of a deck are schema.hpp's.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace carousel {

/// Names of the topics, "deck" among them.
[[nodiscard]] std::vector<std::string> help_topics();

/// The pages on networks that decks list, and on kinds of layers.
[[nodiscard]] std::string help_on_lists();
[[nodiscard]] std::string help_on_layers();

/// A line per topic, for the end of the general help.
[[nodiscard]] std::string list_of_topics();

/// The page of a topic, or nothing where there is no such topic.
[[nodiscard]] std::optional<std::string> help_on(std::string_view topic);

}  // namespace carousel
