// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/deck.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <tuple>

#include "app/toml_text.hpp"
#include "core/base/check.hpp"

// toml++ 3.3.0 asserts, or in release builds lets the compiler assume, what malformed text breaks.
// Without its assertions it reports these errors. This is the only file that includes it.
#undef NDEBUG
#define TOML_ASSERT(condition) static_cast<void>(0)
#define TOML_MAX_NESTED_VALUES 32
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace carousel {
namespace {

bool bare(std::string_view key) {
  const auto allowed = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  return !key.empty() && std::all_of(key.begin(), key.end(), allowed);
}

/// A key whose quotes hide dots must not pass for a dotted one.
std::string joined(const std::string& table, std::string_view key) {
  const std::string part = bare(key) ? std::string(key) : in_quotes(key);
  return table.empty() ? part : table + "." + part;
}

toml::table parse(std::string_view text, const std::string& path) {
  // Editors may begin a file with a mark of its encoding.
  if (text.starts_with(utf8_mark)) text.remove_prefix(utf8_mark.size());
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    fail(ExitCode::usage, "{}: the deck is UTF-16; save it as UTF-8", path);
  check_toml_text(text, path);
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    const Location location{path, static_cast<int>(at.line), static_cast<int>(at.column)};
    fail(ExitCode::usage, "{}: {}", to_string(location), error.description());
  }
}

DeckValue convert(const toml::node& node);

/// Fields in the order of the text, which the parser's tables do not keep.
DeckValue::Table convert_table(const toml::table& table) {
  std::vector<std::pair<toml::source_position, DeckField>> placed;
  for (const auto& [key, node] : table)
    placed.emplace_back(key.source().begin, DeckField{std::string(key.str()), convert(node)});
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  DeckValue::Table fields;
  for (auto& [place, field] : placed) fields.push_back(std::move(field));
  return fields;
}

DeckValue convert(const toml::node& node) {
  const toml::source_position at = node.source().begin;
  DeckValue value{
      .data = {}, .line = static_cast<int>(at.line), .column = static_cast<int>(at.column)};
  if (const auto* boolean = node.as_boolean()) value.data = boolean->get();
  if (const auto* integer = node.as_integer()) value.data = integer->get();
  if (const auto* real = node.as_floating_point()) value.data = real->get();
  if (const auto* string = node.as_string()) value.data = string->get();
  if (const toml::table* table = node.as_table()) value.data = convert_table(*table);
  if (const toml::array* array = node.as_array()) {
    DeckValue::List list;
    for (const toml::node& element : *array) list.push_back(convert(element));
    value.data = std::move(list);
  }
  return value;
}

/// A value that has no place in a file.
DeckValue without_place(DeckValue value) {
  value.line = value.column = 0;
  if (auto* list = std::get_if<DeckValue::List>(&value.data)) {
    for (DeckValue& element : *list) element = without_place(std::move(element));
  } else if (auto* table = std::get_if<DeckValue::Table>(&value.data)) {
    for (DeckField& field : *table) field.value = without_place(std::move(field.value));
  }
  return value;
}

/// Turns the tree of tables into the flat lists of the deck.
void flatten(const toml::table& table, const std::string& name, Deck& deck) {
  for (const auto& [key, node] : table) {
    const std::string path = joined(name, key.str());
    const toml::source_position at = key.source().begin;
    const Location location{deck.path, static_cast<int>(at.line), static_cast<int>(at.column)};
    if (const toml::table* inner = node.as_table()) {
      deck.tables.push_back({path, location});
      flatten(*inner, path, deck);
    } else {
      deck.entries.push_back({path, convert(node), location, ""});
    }
  }
}

template <class Item>
void sort_by_place(std::vector<Item>& items) {
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return std::tie(a.location.line, a.location.column) <
           std::tie(b.location.line, b.location.column);
  });
}

/// Words need no quotes on a command line: what is no TOML value is a string.
DeckEntry parse_override(const std::string& text) {
  const Location location{.file = command_line, .line = 0, .column = 0};
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    fail(ExitCode::usage,
         "{}: {} is not an override; write table.key=value, or table.key= to remove the key",
         command_line, in_quotes(text));
  const std::string key = text.substr(0, equals);
  const std::string value = text.substr(equals + 1);
  if (value.empty()) return {key, {}, location, ""};
  // No key takes a date or a time, which such a string looks like.
  const std::optional<DeckValue> parsed = parse_value(value);
  if (parsed && !std::holds_alternative<std::monostate>(parsed->data))
    return {key, *parsed, location, value};
  if (std::string_view("\"'[{").find(value.front()) != std::string_view::npos)
    fail(ExitCode::usage, "{}: {} = {} is not a TOML value; check how the shell reads its quotes",
         command_line, in_quotes(key), in_quotes(value));
  return {key, DeckValue{value}, location, value};
}

void apply_overrides(Deck& deck, const std::vector<std::string>& overrides) {
  std::vector<DeckEntry> given;
  const auto removes = [](const DeckEntry& entry) { return entry.text.empty(); };
  for (const std::string& text : overrides) {
    DeckEntry entry = parse_override(text);
    const auto same = [&](const DeckEntry& other) { return other.key == entry.key; };
    if (std::any_of(given.begin(), given.end(), same))
      fail(ExitCode::usage, "{}: {} is given twice", command_line, in_quotes(entry.key));
    std::erase_if(deck.entries, same);
    given.push_back(std::move(entry));
  }
  std::ranges::copy_if(given, std::back_inserter(deck.removed), removes);
  std::ranges::remove_copy_if(given, std::back_inserter(deck.entries), removes);
}

}  // namespace

std::string to_string(const Location& location) {
  if (location.line == 0) return location.file;
  return fmt::format("{}:{}:{}", location.file, location.line, location.column);
}

std::optional<DeckValue> parse_value(std::string_view text) {
  try {
    const toml::table table = parse(fmt::format("value = {}", text), command_line);
    const toml::node* node = table.get("value");
    // A line break would let a value bring further keys.
    if (node != nullptr && table.size() == 1) return without_place(convert(*node));
  } catch (const Error&) {
  }
  return {};
}

Deck parse_deck(std::string_view text, const std::string& path,
                const std::vector<std::string>& overrides) {
  Deck deck{.path = path, .tables = {}, .entries = {}, .removed = {}};
  flatten(parse(text, path), "", deck);
  sort_by_place(deck.tables);
  sort_by_place(deck.entries);
  apply_overrides(deck, overrides);
  return deck;
}

Deck read_deck(const std::string& path, const std::vector<std::string>& overrides) {
  std::string text(max_deck_bytes + 1, '\0');  // never reads a device or a log to its end
  // Front end and engine both read it, and a pipe holds it once at most.
  std::error_code unknown;
  if (std::filesystem::is_fifo(path, unknown))
    fail(ExitCode::usage, "{}: the deck is a pipe; save it to a file", path);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ExitCode::usage, "{}: the deck cannot be opened: {}", path, std::strerror(errno));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || errno == EISDIR)
    fail(ExitCode::input_output, "{}: the deck cannot be read: {}", path, std::strerror(errno));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return parse_deck(text, path, overrides);
}

}  // namespace carousel
