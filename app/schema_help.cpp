// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The schema in words: what a key takes, and the help on all keys.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/nearest.hpp"
#include "app/schema.hpp"
#include "core/base/check.hpp"
#include "core/base/text.hpp"

namespace carousel {
namespace {

constexpr std::size_t indent = 22;

std::string range_words(const Allowed& range) {
  const bool bounded = range.max < std::numeric_limits<double>::infinity();
  if (bounded && !range.open_min && !range.open_max)
    return fmt::format(" from {:.15g} to {:.15g}", range.min, range.max);
  std::string words;
  if (range.min > -std::numeric_limits<double>::infinity())
    words += fmt::format(" {} {:.15g}", range.open_min ? "above" : "of at least", range.min);
  if (bounded)
    words += fmt::format("{}{} {:.15g}", words.empty() ? " " : " and ",
                         range.open_max ? "below" : "at most", range.max);
  return words;
}

/// "a, b or c", each between quotes if there are any.
std::string either(const std::vector<std::string>& words, const char* quote) {
  std::string list;
  for (const std::string& word : words) {
    const char* comma = list.empty() ? "" : &word == &words.back() ? " or " : ", ";
    list += fmt::format("{}{}{}{}", comma, quote, word, quote);
  }
  return list;
}

/// "Only with rule = dp and placement = single."; keys of the same table without its name.
std::string conditions(const KeySpec& spec) {
  std::string text;
  for (const Condition& condition : spec.traits.only_with) {
    const std::string table = spec.table + ".";
    const bool same_table = condition.key.rfind(table, 0) == 0;
    text += fmt::format("{} {} = {}", text.empty() ? " Only with" : " and",
                        same_table ? condition.key.substr(table.size()) : condition.key,
                        either(condition.values, ""));
  }
  return text.empty() ? "" : text + ".";
}

std::string key_help(const KeySpec& spec) {
  std::string values = allowed_words(spec);
  if (spec.traits.missing == Missing::refused) values += "; required";
  if (spec.traits.missing == Missing::standard)
    values +=
        "; default " + (spec.defaults.empty() ? to_toml(standard_value(spec)) : spec.defaults);
  std::string lines = wrapped(values, indent) + wrapped(spec.doc + conditions(spec), indent);
  return lines.replace(2, spec.name.size(), spec.name);
}

}  // namespace

std::string allowed_words(const KeySpec& spec) {
  const std::string range = range_words(spec.allowed);
  const std::string unit = spec.allowed.unit.empty() ? "" : " (" + spec.allowed.unit + ")";
  const bool any = spec.allowed.choices.empty();
  std::string choices = any ? "a string" : either(spec.allowed.choices, "\"");
  switch (spec.type) {
    case KeyType::boolean:
      return "true or false";
    case KeyType::integer:
      return fmt::format("an integer{}{}", range, unit);
    case KeyType::number:
      return fmt::format("a number{}{}", range, unit);
    case KeyType::integers:
      return fmt::format("a list of integers{}{}", range, unit);
    case KeyType::numbers:
      return fmt::format("a list of numbers{}{}", range, unit);
    case KeyType::strings:
      return any ? "a string or a list of strings" : "a list of " + choices;
    case KeyType::list:
    case KeyType::table:
      return spec.allowed.unit;
    case KeyType::string:
      break;
  }
  return choices;
}

std::string deck_help(const std::string& table) {
  const std::vector<std::string> names = table_names();
  if (!table.empty() && std::ranges::find(names, table) == names.end())
    fail(ExitCode::usage, "unknown table {}{}; tables are {}", in_quotes(table),
         did_you_mean(table, names), fmt::join(names, ", "));
  std::string text;
  for (const TableSpec& each : deck_tables()) {
    if (!table.empty() && each.name != table) continue;
    text += fmt::format("{}[{}]  {}\n", text.empty() ? "" : "\n", each.name, each.doc);
    for (const KeySpec& spec : each.keys) text += key_help(spec);
  }
  if (!table.empty()) return text;
  return fmt::format(
      "A deck is a TOML file with these tables and keys.\n\n{}\n"
      "On the command line parallel.rule=dp replaces a key, parallel.slack= removes it.\n",
      text);
}

}  // namespace carousel
