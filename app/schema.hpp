// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which keys a deck may have: one table that validation, defaults and help are made from. It says
// nothing about what a key does; run_config.cpp turns the values into the structs of core.

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "app/deck.hpp"

namespace carousel {

enum class KeyType : std::uint8_t { boolean, integer, number, string, integers, numbers };

/// Numbers from min to max; `open_min` and `open_max` exclude the bound itself.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool open_min = false;
  bool open_max = false;

  [[nodiscard]] bool contains(double value) const;
};

/// Holds when `key`, which takes strings, has one of `values`.
struct Condition {
  std::string key;
  std::vector<std::string> values;
};

struct KeySpec {
  std::string table = {};
  std::string name;
  KeyType type = KeyType::string;
  std::string doc;                         // one line
  std::optional<DeckValue> standard = {};  // the default
  bool required = false;                   // must be given where it has an effect
  Range range = {};                        // of a number, or of every element
  std::vector<std::string> choices = {};   // of a string; empty: any
  std::vector<std::string> later = {};     // choices that are planned but not of this version
  std::vector<Condition> only_with = {};   // otherwise the key has no effect and is refused
  std::string unit = {};

  [[nodiscard]] std::string key() const { return table + "." + name; }
};

struct TableSpec {
  std::string name;
  std::string doc;
  std::vector<KeySpec> keys;
  bool optional = false;  // its keys have no effect, and none is required, unless one is given
};

[[nodiscard]] const std::vector<TableSpec>& deck_tables();

/// The specification of "table.name"; null when there is none.
[[nodiscard]] const KeySpec* find_key(std::string_view key);

/// What a key takes, in words: "an integer, 1 to 4096".
[[nodiscard]] std::string allowed(const KeySpec& spec);

/// Help on every key, for a terminal of 80 columns.
[[nodiscard]] std::string deck_help();

}  // namespace carousel
