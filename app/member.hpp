// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ties a key of a deck to the member of RunConfig that holds its value. It checks nothing: a value
// that is written has the key's type and lies in its range.

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <variant>

#include "app/deck.hpp"
#include "app/run_config.hpp"

namespace carousel {

enum class KeyType : std::uint8_t { boolean, integer, number, string, integers, numbers };

namespace detail {

template <class Value>
inline constexpr bool is_text = std::is_same_v<Value, std::string> || std::is_enum_v<Value>;

template <class Value>
constexpr KeyType key_type() {
  if constexpr (is_text<Value>)
    return KeyType::string;
  else if constexpr (std::is_same_v<Value, bool>)
    return KeyType::boolean;
  else if constexpr (std::is_integral_v<Value>)
    return KeyType::integer;
  else if constexpr (std::is_floating_point_v<Value>)
    return KeyType::number;
  else
    return std::is_integral_v<typename Value::value_type> ? KeyType::integers : KeyType::numbers;
}

template <class Value>
DeckValue deck_value(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return {std::string(to_string(value))};
  } else if constexpr (key_type<Value>() == KeyType::integer) {
    return {static_cast<std::int64_t>(value)};
  } else if constexpr (key_type<Value>() >= KeyType::integers) {
    DeckValue::List list;
    for (const auto& element : value) list.push_back(deck_value(element));
    return {std::move(list)};
  } else {
    return {value};
  }
}

template <class Value>
void assign(Value& target, const DeckValue& value) {
  if constexpr (std::is_enum_v<Value>) {
    // Enumerators count from 0, and their words differ.
    int k = 0;
    while (std::get<std::string>(value.data) != to_string(static_cast<Value>(k))) ++k;
    target = static_cast<Value>(k);
  } else if constexpr (key_type<Value>() == KeyType::integer) {
    target = static_cast<Value>(std::get<std::int64_t>(value.data));
  } else if constexpr (key_type<Value>() >= KeyType::integers) {
    target.clear();
    for (const DeckValue& element : std::get<DeckValue::List>(value.data))
      assign(target.emplace_back(), element);
  } else {
    target = std::get<Value>(value.data);
  }
}

}  // namespace detail

/// A member of any of the structs in RunConfig.
struct Member {
  /// `table` finds the struct in a RunConfig, const or not.
  template <class Table, class Struct, class Value>
  Member(Table table, Value Struct::*member)
      : type(detail::key_type<Value>()),
        read([=](const RunConfig& config) { return detail::deck_value(table(config).*member); }),
        write([=](RunConfig& config, const DeckValue& value) {
          detail::assign(table(config).*member, value);
        }) {}

  KeyType type;
  std::function<DeckValue(const RunConfig&)> read;
  std::function<void(RunConfig&, const DeckValue&)> write;
};

}  // namespace carousel
