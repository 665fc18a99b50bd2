// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads a deck: TOML text becomes a flat list of keys with their values and the place of each. It
// knows no key names; what a key means and which values it takes is the schema's business.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text.hpp"
#include "core/deck/value.hpp"

namespace carousel {

/// Where something was written. Line and column start at 1 and count characters; 0 means unknown.
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
};

/// Stands for the file of what was typed as an override.
inline constexpr const char* command_line = "command line";

/// "inputs/digits.toml:7:3", as compilers write it.
[[nodiscard]] std::string to_string(const Location& location);

struct DeckEntry {
  std::string key;  // "train.optimizer.momentum"
  DeckValue value;
  Location location;
  std::string text;  // of an override, as typed
};

struct DeckTable {
  std::string name;  // "train.optimizer"
  Location location;
};

struct Deck {
  std::string path;
  std::vector<DeckTable> tables;   // in the order of the text
  std::vector<DeckEntry> entries;  // in the order of the text, then of the command line
  std::vector<DeckEntry> removed;  // by the command line, whether the text has them or not
};

/// Reads the file at `path`, then lets every override `table.key=value` replace or add a key, and
/// `table.key=` remove one. Throws Error(usage) naming file, line and column, or
/// Error(input_output).
[[nodiscard]] Deck read_deck(const std::string& path, const std::vector<std::string>& overrides);

/// The same for text that lies in memory; `path` only names it.
[[nodiscard]] Deck parse_deck(std::string_view text, const std::string& path,
                              const std::vector<std::string>& overrides);

/// Reads `text` as the right-hand side of a TOML key; nothing when it is not one.
[[nodiscard]] std::optional<DeckValue> parse_value(std::string_view text);

}  // namespace carousel
