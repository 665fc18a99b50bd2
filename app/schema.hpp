// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which keys a deck may have: a row for each, from which reading, checks, defaults, help and the
// resolved deck follow. Rules between keys that a row cannot express are deck_rules.cpp's business.

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "app/member.hpp"

namespace carousel {

/// What a key may be: numbers (or the elements of a list) from min to max, less the bound itself
/// where it is open; for strings, one of the choices, or anything where there are none.
struct Allowed {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool open_min = false;
  bool open_max = false;
  std::string unit = {};
  std::vector<std::string> choices = {};

  [[nodiscard]] bool contains(double value) const;
};

/// Holds when `key`, which takes strings, has one of `values`.
struct Condition {
  std::string key;
  std::vector<std::string> values;
};

/// What a deck without the key means.
enum class Missing : std::uint8_t {
  standard,  // the value that the default of the struct has
  refused,   // the key must be given where it has an effect
  nothing,   // the value is said nowhere
};

/// What few keys have.
struct KeyTraits {
  Missing missing = Missing::standard;
  std::vector<Condition> only_with = {};  // otherwise the key has no effect
  std::string instead_of = {};            // a key that says the same in other units
};

struct KeySpec {
  std::string name;
  Member member;
  Allowed allowed;
  std::string doc;
  KeyTraits traits = {};
  std::string table = {};

  [[nodiscard]] std::string key() const { return table + "." + name; }
};

struct TableSpec {
  std::string name;
  std::string doc;
  std::vector<KeySpec> keys;
  bool optional = false;  // its keys have no effect, and none is required, unless one is given
};

[[nodiscard]] const std::vector<TableSpec>& deck_tables();
[[nodiscard]] std::vector<std::string> table_names();
[[nodiscard]] std::vector<std::string> key_names();

/// The row of "table.name"; null when there is none.
[[nodiscard]] const KeySpec* find_key(std::string_view key);

/// The value in a default-constructed struct.
[[nodiscard]] DeckValue standard_value(const KeySpec& spec);

/// What a key takes, in words: "an integer from 1 to 4096".
[[nodiscard]] std::string allowed_words(const KeySpec& spec);

/// Help on the keys of a table, or of all without a name, for a terminal of 80 columns. Throws
/// Error(usage) naming the table that was probably meant.
[[nodiscard]] std::string deck_help(const std::string& table = "");

}  // namespace carousel
