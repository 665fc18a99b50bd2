// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which keys a deck may have: the rows of all structs that it fills, from which reading, checks,
// defaults, help and the resolved deck follow. Rules between keys that a row cannot express are the
// structs' and deck_rules.cpp's business.

#include <string>
#include <string_view>
#include <vector>

#include "app/run_config.hpp"
#include "core/deck/row.hpp"

namespace carousel {

/// A row of the deck.
struct KeySpec : Row<RunConfig> {
  std::string table = {};

  [[nodiscard]] std::string key() const { return table + "." + name; }
};

struct TableSpec {
  std::string name;
  std::string doc;
  std::vector<KeySpec> keys = {};
  bool optional = false;  // its keys have no effect, and none is required, unless one is given
};

[[nodiscard]] const std::vector<TableSpec>& deck_tables();
[[nodiscard]] std::vector<std::string> table_names();
[[nodiscard]] std::vector<std::string> key_names();

/// The row of "table.name"; null when there is none.
[[nodiscard]] const KeySpec* find_key(std::string_view key);

/// What a key is called today that decks of earlier versions may have under another name.
[[nodiscard]] std::string present_name(const std::string& key);

/// The value in a default-constructed struct, of the standard kind where there are several.
[[nodiscard]] DeckValue standard_value(const KeySpec& spec);

/// What a key takes, in words: "an integer from 1 to 4096".
[[nodiscard]] std::string allowed_words(const KeySpec& spec);

/// Help on the keys of a table, or of all without a name, for a terminal of 80 columns. Throws
/// Error(usage) naming the table that was probably meant.
[[nodiscard]] std::string deck_help(const std::string& table = "");

}  // namespace carousel
