// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A deck that agrees with the schema: every key that has an effect, with its value and where that
// comes from. Rules between keys beyond "has no effect with" are run_config's business.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/schema.hpp"

namespace carousel {

class ResolvedDeck {
 public:
  ResolvedDeck() = default;
  /// Checks every table and key of `deck`, and adds the defaults. Throws Error(usage) naming the
  /// place, the key, what is allowed, and the name that was probably meant.
  explicit ResolvedDeck(const Deck& deck);

  /// Whether the key has a value: given, or by default where it has an effect.
  [[nodiscard]] bool has(std::string_view key) const;
  /// Whether an optional table is given.
  [[nodiscard]] bool has_table(std::string_view name) const;
  /// Whether the deck or the command line gives it.
  [[nodiscard]] bool given(std::string_view key) const;

  [[nodiscard]] bool flag(std::string_view key) const;
  [[nodiscard]] std::int64_t integer(std::string_view key) const;
  [[nodiscard]] double number(std::string_view key) const;
  [[nodiscard]] const std::string& text(std::string_view key) const;
  [[nodiscard]] std::vector<double> numbers(std::string_view key) const;  // also of integers

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Where the key is written: "inputs/digits.toml:7:3", or the deck alone for a default.
  [[nodiscard]] std::string where(std::string_view key) const;

  /// Replaces the value of a key that has one, not its origin.
  void set_text(std::string_view key, const std::string& value);

  /// The deck as TOML with all values; `origins` adds comments on where each comes from.
  [[nodiscard]] std::string to_toml(bool origins) const;

 private:
  struct Item {
    DeckValue value;
    std::optional<Location> location;  // none: a default
  };

  void check_names(const Deck& deck) const;
  void displace(std::string_view key, std::string_view other);
  void drop_without_effect(const KeySpec& spec);
  void require(const KeySpec& spec) const;
  [[nodiscard]] const DeckValue& value(std::string_view key) const;

  std::string path_;
  std::map<std::string, Item, std::less<>> items_;
};

}  // namespace carousel
