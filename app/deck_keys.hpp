// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which keys of a deck have an effect and where each is written. It knows none of their values.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "app/deck.hpp"

namespace carousel {

class DeckKeys {
 public:
  DeckKeys() = default;
  explicit DeckKeys(std::string path) : path_(std::move(path)) {}

  /// Where nobody writes the key, its default has the effect.
  void add(const std::string& key, std::optional<Location> location = {}) {
    keys_[key] = std::move(location);
  }
  void remove(const std::string& key) { keys_.erase(key); }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool has(std::string_view key) const { return keys_.find(key) != keys_.end(); }
  /// Whether the deck or the command line gives it.
  [[nodiscard]] bool given(std::string_view key) const { return has(key) && location(key); }
  /// Whether the command line gives it.
  [[nodiscard]] bool typed(std::string_view key) const {
    return given(key) && location(key)->file == command_line;
  }
  /// The file that gives it.
  [[nodiscard]] std::string file_of(std::string_view key) const {
    return given(key) ? location(key)->file : path_;
  }
  /// "inputs/digits.toml:7:3", or the deck alone for a default.
  [[nodiscard]] std::string where(std::string_view key) const {
    return given(key) ? to_string(*location(key)) : path_;
  }

 private:
  [[nodiscard]] const std::optional<Location>& location(std::string_view key) const {
    return keys_.find(key)->second;
  }

  std::string path_;
  std::map<std::string, std::optional<Location>, std::less<>> keys_;
};

}  // namespace carousel
