// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/deck/value.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/text.hpp"

namespace carousel {
namespace {

bool is_bare(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

bool is_table(const DeckValue& value) {
  return std::holds_alternative<DeckValue::Table>(value.data);
}

/// Lines of a list are indented by the number of lists around.
std::string text_of(const DeckValue& value, std::size_t depth) {
  if (const bool* boolean = std::get_if<bool>(&value.data)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value.data)) return fmt::to_string(*integer);
  if (const double* real = std::get_if<double>(&value.data)) {
    std::string text = fmt::format("{}", *real);
    if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
    return text;
  }
  if (const auto* string = std::get_if<std::string>(&value.data))
    return fmt::format("\"{}\"", escaped(*string));
  std::vector<std::string> elements;
  if (const auto* list = std::get_if<DeckValue::List>(&value.data)) {
    const bool in_lines = std::ranges::any_of(*list, is_table);
    for (const DeckValue& element : *list) elements.push_back(text_of(element, depth + 1));
    if (!in_lines) return fmt::format("[{}]", fmt::join(elements, ", "));
    const std::string line = "\n" + std::string(2 * (depth + 1), ' ');
    return fmt::format("[{}{}]", line, fmt::join(elements, "," + line));
  }
  if (const auto* table = std::get_if<DeckValue::Table>(&value.data)) {
    for (const DeckField& field : *table)
      elements.push_back(fmt::format(
          "{} = {}", is_bare(field.name) ? field.name : fmt::format("\"{}\"", escaped(field.name)),
          text_of(field.value, depth)));
    return elements.empty() ? "{}" : fmt::format("{{ {} }}", fmt::join(elements, ", "));
  }
  return "?";
}

}  // namespace

bool DeckValue::operator==(const DeckValue& other) const {
  return data == other.data;
}

const DeckValue* find_field(const DeckValue::Table& table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &DeckField::name);
  return found == table.end() ? nullptr : &found->value;
}

std::string to_toml(const DeckValue& value) {
  return text_of(value, 0);
}

std::string place_of(const DeckValue& value, const std::string& file) {
  if (value.line == 0) return file;
  return fmt::format("{}:{}:{}", file, value.line, value.column);
}

}  // namespace carousel
