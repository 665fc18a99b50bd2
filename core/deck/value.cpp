// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/deck/value.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/text.hpp"

namespace carousel {

std::string to_toml(const DeckValue& value) {
  if (const bool* boolean = std::get_if<bool>(&value.data)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value.data)) return fmt::to_string(*integer);
  if (const double* real = std::get_if<double>(&value.data)) {
    std::string text = fmt::format("{}", *real);
    if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
    return text;
  }
  if (const auto* string = std::get_if<std::string>(&value.data))
    return fmt::format("\"{}\"", escaped(*string));
  if (const auto* list = std::get_if<DeckValue::List>(&value.data)) {
    std::vector<std::string> elements;
    for (const DeckValue& element : *list) elements.push_back(to_toml(element));
    return fmt::format("[{}]", fmt::join(elements, ", "));
  }
  return "?";
}

}  // namespace carousel
