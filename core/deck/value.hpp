// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One value of a deck as TOML has it, before a key gives it a type.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace carousel {

struct DeckField;

/// Empty stands for what no key takes: dates and times.
struct DeckValue {
  using List = std::vector<DeckValue>;
  using Table = std::vector<DeckField>;  // in the order of the text
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Table> data;
  int line = 0;  // where it was written, from 1 on; 0: unknown
  int column = 0;

  /// What it is, wherever it was written.
  bool operator==(const DeckValue& other) const;
};

/// What a table has under a name.
struct DeckField {
  std::string name;
  DeckValue value;

  bool operator==(const DeckField&) const = default;
};

/// What a table has under a name, null where it has nothing.
[[nodiscard]] const DeckValue* find_field(const DeckValue::Table& table, std::string_view name);

/// The value as TOML text, which reads back as the same value. Lists of tables have a line for
/// each.
[[nodiscard]] std::string to_toml(const DeckValue& value);
/// "inputs/unet.toml:9:7", as compilers write it; the file alone where nobody knows the place.
[[nodiscard]] std::string place_of(const DeckValue& value, const std::string& file);

}  // namespace carousel
