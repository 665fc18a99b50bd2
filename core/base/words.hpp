// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The words by which decks, files and sentences call the values of an enum. Each enum says them
// once, in a function words_of() beside its enumerators; nothing here knows one of them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>

#include "core/base/check.hpp"

namespace carousel {

namespace detail {
/// What GCC, Clang and nvcc call a value of an enum here is its enumerator, or else a number in a
/// cast: "(carousel::Stem)2".
template <auto Value>
constexpr bool is_enumerator() {
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  return text[text.find_first_not_of(' ', text.rfind('=') + 1)] != '(';
}
}  // namespace detail

/// How many enumerators there are, where they count from 0.
template <class Enum, std::size_t Count = 0>
constexpr std::size_t enumerators() {
  if constexpr (detail::is_enumerator<static_cast<Enum>(Count)>())
    return enumerators<Enum, Count + 1>();
  else
    return Count;
}

/// What words_of() returns: a word for each enumerator, in their order.
template <class Enum>
using Words = std::array<const char*, enumerators<Enum>()>;

template <class Enum, class... Word>
constexpr Words<Enum> all_words(Word... words) {
  static_assert(sizeof...(Word) == enumerators<Enum>(), "each enumerator has one word");
  return {words...};
}

template <class Enum>
concept Worded = std::is_enum_v<Enum> && requires(Enum value) {
  words_of(value).size();
};

/// Error(internal) for what is no enumerator.
template <Worded Enum>
[[nodiscard]] const char* to_string(Enum value) {
  const Words<Enum> words = words_of(value);
  const auto number = static_cast<std::size_t>(value);
  CAROUSEL_CHECK(number < words.size(), "no value has number {}, {} is the last", number,
                 words.back());
  return words[number];
}

/// The enumerator of that word, if there is one.
template <Worded Enum>
[[nodiscard]] std::optional<Enum> find_value(std::string_view word) {
  const Words<Enum> words = words_of(Enum());
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) return std::nullopt;
  return static_cast<Enum>(found - words.begin());
}

/// The same. Error(internal) where there is none: who reads a deck has looked.
template <Worded Enum>
[[nodiscard]] Enum value_named(std::string_view word) {
  const std::optional<Enum> value = find_value<Enum>(word);
  const Words<Enum> words = words_of(Enum());
  CAROUSEL_CHECK(value, "{} is none of {} ... {}", word, words.front(), words.back());
  return *value;
}

}  // namespace carousel
