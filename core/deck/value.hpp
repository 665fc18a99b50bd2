// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One value of a deck as TOML has it, before a key gives it a type.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace carousel {

/// Empty stands for what no key takes: dates, times, tables inside lists.
struct DeckValue {
  using List = std::vector<DeckValue>;
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List> data;

  bool operator==(const DeckValue&) const = default;
};

/// The value as TOML text, which reads back as the same value.
[[nodiscard]] std::string to_toml(const DeckValue& value);

}  // namespace carousel
