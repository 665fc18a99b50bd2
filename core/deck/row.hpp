// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A key of a deck: its name, the member of a struct that it fills, what it may be, and its help.
// Each struct that a deck fills has its rows beside it; app/schema joins them to the whole deck.

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/words.hpp"
#include "core/deck/value.hpp"

namespace carousel {

enum class KeyType : std::uint8_t {
  boolean,
  integer,
  number,
  string,
  integers,
  numbers,
  strings,
  list,  // of anything, which whoever has the key judges
  table  // of anything under any names
};

/// What a key may be: numbers (or the elements of a list) from min to max, less the bound itself
/// where it is open; for strings, or the elements of a list, one of the choices, or anything where
/// there are none.
struct Allowed {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool open_min = false;
  bool open_max = false;
  std::string unit = {};
  std::vector<std::string> choices = {};

  [[nodiscard]] bool contains(double value) const {
    return (open_min ? value > min : value >= min) && (open_max ? value < max : value <= max);
  }
  bool operator==(const Allowed&) const = default;
};

/// Holds when `key`, which takes strings, has one of `values`.
struct Condition {
  std::string key = {};
  std::vector<std::string> values = {};

  bool operator==(const Condition&) const = default;
};

/// What a deck without the key means.
enum class Missing : std::uint8_t {
  standard,  // the value that the default of the struct has
  refused,   // the key must be given where it has an effect
  nothing,   // the value is said nowhere
};

/// What a run that goes on may not change, and what other numbers follow from.
enum class Bond : std::uint8_t {
  free,     // where and for how long a run computes, not what
  numbers,  // other values give other numbers from then on
  fixed,    // another value would be another run
};

/// What few keys have.
struct KeyTraits {
  Missing missing = Missing::standard;
  std::vector<Condition> only_with = {};  // otherwise the key has no effect
  std::string instead_of = {};            // a key that says the same in other units
  Bond bond = Bond::free;
  bool chooses = false;     // which other keys there are; it is read before them
  Condition implies = {};   // what a deck with this key and without that one means
  std::string former = {};  // "table.name" that it had in earlier versions
};

/// A value that those of other keys make meaningless.
struct NoEffect {
  std::string key;
  std::vector<std::string> causes;  // the other keys
  std::string hint;                 // what has an effect
};

/// A row without the struct that it fills.
struct RowText {
  std::string name;
  KeyType type = KeyType::string;
  Allowed allowed;
  std::string doc;
  KeyTraits traits = {};
  std::string defaults = {};  // in words, where kinds have others: "0.9 (a), 0.99 (b)"
};

/// A row of the keys that fill a `Struct`. A value that is written has the key's type and lies in
/// its range; the standard value is that of a new struct of the same kind.
template <class Struct>
struct Row : RowText {
  std::function<DeckValue(const Struct&)> read = {};
  std::function<void(Struct&, const DeckValue&)> write = {};
  std::function<DeckValue(const Struct&)> standard = {};
};

namespace detail {

template <class Value>
inline constexpr bool is_text = std::is_same_v<Value, std::string> || std::is_enum_v<Value>;

template <class Value>
constexpr KeyType key_type() {
  if constexpr (std::is_same_v<Value, DeckValue>)
    return KeyType::list;
  else if constexpr (is_text<Value>)
    return KeyType::string;
  else if constexpr (std::is_same_v<Value, bool>)
    return KeyType::boolean;
  else if constexpr (std::is_integral_v<Value>)
    return KeyType::integer;
  else if constexpr (std::is_floating_point_v<Value>)
    return KeyType::number;
  else if constexpr (is_text<typename Value::value_type>)
    return KeyType::strings;
  else
    return std::is_integral_v<typename Value::value_type> ? KeyType::integers : KeyType::numbers;
}

template <class Value>
DeckValue deck_value(const Value& value) {
  if constexpr (std::is_same_v<Value, DeckValue>) {
    return value;
  } else if constexpr (std::is_enum_v<Value>) {
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
  if constexpr (std::is_same_v<Value, DeckValue>) {
    target = value;
  } else if constexpr (std::is_enum_v<Value>) {
    target = value_named<Value>(std::get<std::string>(value.data));
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

/// The rows of a struct that lies in another one, where `at` finds it, const or not.
template <class Outer, class Inner, class At>
[[nodiscard]] std::vector<Row<Outer>> rows_at(const std::vector<Row<Inner>>& rows, At at) {
  std::vector<Row<Outer>> joined;
  for (const Row<Inner>& row : rows)
    joined.push_back({static_cast<const RowText&>(row),
                      [=](const Outer& config) { return row.read(at(config)); },
                      [=](Outer& config, const DeckValue& value) { row.write(at(config), value); },
                      [=](const Outer& config) { return row.standard(at(config)); }});
  return joined;
}

/// A row: name, the member that holds the value, what is allowed, help, and what few rows have.
template <class Struct, class Value>
[[nodiscard]] Row<Struct> key(const char* name, Value Struct::*member, Allowed allowed,
                              std::string doc, KeyTraits traits = {}) {
  return {{name, detail::key_type<Value>(), std::move(allowed), std::move(doc), std::move(traits)},
          [=](const Struct& config) { return detail::deck_value(config.*member); },
          [=](Struct& config, const DeckValue& value) { detail::assign(config.*member, value); },
          [=](const Struct&) { return detail::deck_value(Struct().*member); }};
}

// ---- What keys may be ----
inline const Allowed anything = {};
inline const Allowed zero_to_one = {.min = 0, .max = 1};
inline const Allowed below_one = {.min = 0, .max = 1, .open_max = true};

[[nodiscard]] inline Allowed at_least(double min, std::string unit = "") {
  return {.min = min, .unit = std::move(unit)};
}
[[nodiscard]] inline Allowed above(double min, std::string unit = "") {
  return {.min = min, .open_min = true, .unit = std::move(unit)};
}
[[nodiscard]] inline Allowed within(double min, double max, std::string unit = "") {
  return {.min = min, .max = max, .unit = std::move(unit)};
}
[[nodiscard]] inline Allowed one_of(std::vector<std::string> choices) {
  return {.choices = std::move(choices)};
}
/// Any word of the enum.
template <Worded Enum>
[[nodiscard]] Allowed one_of() {
  const Words<Enum> words = words_of(Enum());
  return {.choices = {words.begin(), words.end()}};
}

// ---- What few keys have ----
inline const KeyTraits required_key = {.missing = Missing::refused};
inline const KeyTraits optional_key = {.missing = Missing::nothing};

[[nodiscard]] inline KeyTraits bound(Bond bond, KeyTraits traits = {}) {
  traits.bond = bond;
  return traits;
}
/// Of keys that have a meaning where another key has one of some values.
[[nodiscard]] inline KeyTraits only_with(const char* key, std::vector<std::string> values,
                                         Missing missing = Missing::standard) {
  return {.missing = missing, .only_with = {{key, std::move(values)}}};
}
/// Of keys in other units, of which a deck gives one.
[[nodiscard]] inline KeyTraits instead_of(const char* key, std::vector<Condition> only_with = {}) {
  return {.missing = Missing::nothing, .only_with = std::move(only_with), .instead_of = key};
}

}  // namespace carousel
