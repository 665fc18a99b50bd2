// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/resolved_deck.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "app/nearest.hpp"
#include "core/base/check.hpp"

namespace carousel {
namespace {

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (const TableSpec& table : deck_tables()) names.push_back(table.name);
  return names;
}

std::vector<std::string> key_names() {
  std::vector<std::string> names;
  for (const TableSpec& table : deck_tables())
    for (const KeySpec& spec : table.keys) names.push_back(spec.key());
  return names;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Whether the deck has the table, if only its name.
bool uses(const Deck& deck, const TableSpec& spec) {
  if (!spec.optional) return true;
  const auto named = [&](const DeckTable& table) { return table.name == spec.name; };
  const auto keyed = [&](const DeckEntry& entry) {
    return find_key(entry.key)->table == spec.name;
  };
  return std::ranges::any_of(deck.tables, named) || std::ranges::any_of(deck.entries, keyed);
}

/// Names of users may hold anything; plain ones are shown plainly.
std::string shown(const std::string& name) {
  const bool plain = name.size() <= 60 && std::all_of(name.begin(), name.end(),
                                                      [](char c) { return c > ' ' && c < 127; });
  return plain ? name : in_quotes(name);
}

/// A value as it was written, short enough for a message.
std::string shown(const DeckValue& value) {
  if (std::holds_alternative<std::monostate>(value.data)) return "a date, time or table";
  if (const auto* text = std::get_if<std::string>(&value.data)) return in_quotes(*text);
  const std::string toml = to_toml(value);
  return toml.size() > 60 ? toml.substr(0, 60) + " ..." : toml;
}

/// Checks one entry against its specification and brings the value into the key's type.
class ValueCheck {
 public:
  ValueCheck(const KeySpec& spec, const DeckEntry& entry) : spec_(spec), entry_(entry) {}

  [[nodiscard]] DeckValue run() const {
    switch (spec_.type) {
      case KeyType::boolean:
        if (!std::holds_alternative<bool>(entry_.value.data)) mistyped();
        return entry_.value;
      case KeyType::integer:
      case KeyType::number:
        return number(entry_.value, spec_.type == KeyType::integer);
      case KeyType::string:
        return string();
      case KeyType::integers:
      case KeyType::numbers:
        break;
    }
    const auto* list = std::get_if<DeckValue::List>(&entry_.value.data);
    if (list == nullptr) mistyped();
    if (list->empty()) refuse("is empty");
    DeckValue::List numbers;
    for (const DeckValue& element : *list)
      numbers.push_back(number(element, spec_.type == KeyType::integers));
    return {std::move(numbers)};
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& hint = "") const {
    fail(ExitCode::usage, "{}: {} = {} {}; allowed is {}{}", to_string(entry_.location), entry_.key,
         shown(entry_.value), what, allowed(spec_), hint);
  }
  [[noreturn]] void mistyped() const { refuse("has the wrong type"); }

  [[nodiscard]] DeckValue number(const DeckValue& value, bool whole) const {
    double as_double = 0;
    if (const auto* integer = std::get_if<std::int64_t>(&value.data))
      as_double = static_cast<double>(*integer);
    else if (const auto* real = std::get_if<double>(&value.data); real != nullptr && !whole)
      as_double = *real;
    else
      mistyped();
    if (!std::isfinite(as_double)) refuse("is not a finite number");
    if (!spec_.range.contains(as_double)) refuse("is out of range");
    return whole ? value : DeckValue{as_double};
  }

  [[nodiscard]] DeckValue string() const {
    const auto* parsed = std::get_if<std::string>(&entry_.value.data);
    // run.name=1234 on a command line means the text.
    if (parsed == nullptr && entry_.text.empty()) mistyped();
    const std::string& text = parsed != nullptr ? *parsed : entry_.text;
    if (contains(spec_.later, text)) refuse("is not in this version");
    if (!spec_.choices.empty() && !contains(spec_.choices, text))
      refuse("is unknown", did_you_mean(text, spec_.choices));
    if (text.empty() && spec_.required) refuse("is empty");
    if (text.find('\0') != std::string::npos) refuse("contains a null character");
    return {text};
  }

  const KeySpec& spec_;
  const DeckEntry& entry_;
};

}  // namespace

ResolvedDeck::ResolvedDeck(const Deck& deck) : path_(deck.path) {
  check_names(deck);
  for (const TableSpec& table : deck_tables())
    for (const KeySpec& spec : table.keys)
      if (spec.standard && uses(deck, table)) items_[spec.key()] = {*spec.standard, {}};
  for (const DeckEntry& entry : deck.entries)
    items_[entry.key] = {ValueCheck(*find_key(entry.key), entry).run(), entry.location};
  displace("train.steps", "train.epochs");
  displace("train.epochs", "train.steps");
  for (const TableSpec& table : deck_tables())
    for (const KeySpec& spec : table.keys) drop_without_effect(spec);
  for (const TableSpec& table : deck_tables())
    for (const KeySpec& spec : table.keys)
      if (uses(deck, table)) require(spec);
}

void ResolvedDeck::check_names(const Deck& deck) const {
  const std::vector<std::string> tables = table_names();
  const std::vector<std::string> keys = key_names();
  for (const DeckTable& table : deck.tables) {
    if (contains(tables, table.name)) continue;
    if (contains(keys, table.name))
      fail(ExitCode::usage, "{}: {} is a key, not a table", to_string(table.location), table.name);
    fail(ExitCode::usage, "{}: unknown table [{}]{}; tables are {}", to_string(table.location),
         shown(table.name), did_you_mean(table.name, tables), fmt::join(tables, ", "));
  }
  for (const DeckEntry& entry : deck.entries) {
    if (contains(keys, entry.key)) continue;
    if (contains(tables, entry.key))
      fail(ExitCode::usage, "{}: {} is a table, not a key; write [{}] and its keys below",
           to_string(entry.location), entry.key, entry.key);
    fail(ExitCode::usage, "{}: unknown key {}{}; `carousel help deck` lists all",
         to_string(entry.location), shown(entry.key), did_you_mean(entry.key, keys));
  }
}

/// Of two keys that exclude each other, the command line's replaces the deck's.
void ResolvedDeck::displace(std::string_view key, std::string_view other) {
  const auto typed = [&](std::string_view name) {
    return given(name) && items_.find(name)->second.location->file == command_line;
  };
  if (typed(key) && given(other) && !typed(other)) items_.erase(items_.find(other));
}

/// Refuse, never ignore: a key that other choices make meaningless may not be given.
void ResolvedDeck::drop_without_effect(const KeySpec& spec) {
  for (const Condition& condition : spec.only_with) {
    const std::string& choice = text(condition.key);
    if (contains(condition.values, choice)) continue;
    if (given(spec.key()))
      fail(ExitCode::usage, "{}: {} has no effect with {} = \"{}\", only with \"{}\"; remove it",
           where(spec.key()), spec.key(), condition.key, choice,
           fmt::join(condition.values, "\" or \""));
    items_.erase(spec.key());
  }
}

void ResolvedDeck::require(const KeySpec& spec) const {
  if (!spec.required || has(spec.key())) return;
  for (const Condition& condition : spec.only_with)
    if (!contains(condition.values, text(condition.key))) return;
  fail(ExitCode::usage, "{}: {} is missing; [{}] needs {} = {}", path_, spec.key(), spec.table,
       spec.name, allowed(spec));
}

bool ResolvedDeck::has_table(std::string_view name) const {
  const auto of_table = [&](const KeySpec& spec) { return has(spec.key()); };
  return std::ranges::any_of(deck_tables(), [&](const TableSpec& table) {
    return table.name == name && std::ranges::any_of(table.keys, of_table);
  });
}

bool ResolvedDeck::has(std::string_view key) const {
  return items_.find(key) != items_.end();
}

bool ResolvedDeck::given(std::string_view key) const {
  const auto found = items_.find(key);
  return found != items_.end() && found->second.location.has_value();
}

const DeckValue& ResolvedDeck::value(std::string_view key) const {
  const auto found = items_.find(key);
  CAROUSEL_CHECK(found != items_.end(), "the deck has no value for {}", key);
  return found->second.value;
}

bool ResolvedDeck::flag(std::string_view key) const {
  return std::get<bool>(value(key).data);
}

std::int64_t ResolvedDeck::integer(std::string_view key) const {
  return std::get<std::int64_t>(value(key).data);
}

double ResolvedDeck::number(std::string_view key) const {
  return std::get<double>(value(key).data);
}

const std::string& ResolvedDeck::text(std::string_view key) const {
  return std::get<std::string>(value(key).data);
}

std::vector<double> ResolvedDeck::numbers(std::string_view key) const {
  std::vector<double> result;
  for (const DeckValue& element : std::get<DeckValue::List>(value(key).data)) {
    const auto* integer = std::get_if<std::int64_t>(&element.data);
    result.push_back(integer != nullptr ? static_cast<double>(*integer)
                                        : std::get<double>(element.data));
  }
  return result;
}

std::string ResolvedDeck::where(std::string_view key) const {
  return given(key) ? to_string(*items_.find(key)->second.location) : path_;
}

void ResolvedDeck::set_text(std::string_view key, const std::string& value) {
  const auto found = items_.find(key);
  CAROUSEL_CHECK(found != items_.end(), "the deck has no value for {}", key);
  found->second.value = {value};
}

std::string ResolvedDeck::to_toml(bool origins) const {
  std::string toml;
  for (const TableSpec& table : deck_tables()) {
    if (table.optional && !has_table(table.name)) continue;
    toml += fmt::format("{}[{}]\n", toml.empty() ? "" : "\n", table.name);
    for (const KeySpec& spec : table.keys) {
      const auto found = items_.find(spec.key());
      if (found == items_.end()) continue;
      const std::string line =
          fmt::format("{} = {}", spec.name, carousel::to_toml(found->second.value));
      const auto& location = found->second.location;
      toml += origins ? fmt::format("{:<40}  # {}\n", line,
                                    location ? printable(to_string(*location)) : "default")
                      : line + "\n";
    }
  }
  return toml;
}

}  // namespace carousel
