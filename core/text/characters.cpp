// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/text/characters.hpp"

#include <utf8proc.h>

#include <array>

namespace carousel {
namespace {

enum class CharacterClass : std::uint8_t { blank, letter, number, other };

/// White_Space of Unicode, which \s stands for.
bool is_blank(std::int32_t code) {
  if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
  switch (code) {
    case 0x85:
    case 0xA0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202F:
    case 0x205F:
    case 0x3000:
      return true;
    default:
      return code >= 0x2000 && code <= 0x200A;
  }
}

CharacterClass class_of(std::int32_t code) {
  if (code < 0) return CharacterClass::other;
  if (is_blank(code)) return CharacterClass::blank;
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharacterClass::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharacterClass::number;
    default:
      return CharacterClass::other;
  }
}

/// Where characters of that class, from `begin` on, end.
std::size_t end_of_class(std::string_view text, std::size_t begin, CharacterClass wanted) {
  while (begin < text.size()) {
    const Character next = character_at(text, begin);
    if (class_of(next.code) != wanted) break;
    begin += next.bytes;
  }
  return begin;
}

}  // namespace

Character character_at(std::string_view text, std::size_t begin) {
  constexpr std::size_t longest = 4;
  const std::string_view here = text.substr(begin, longest);
  utf8proc_int32_t code = -1;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(here.data());
  const utf8proc_ssize_t size =
      utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(here.size()), &code);
  if (size < 1) return {};
  return {code, static_cast<std::size_t>(size)};
}

std::size_t end_of_word(std::string_view text, std::size_t begin) {
  static constexpr std::array<std::string_view, 7> endings = {"'s", "'t",  "'re", "'ve",
                                                              "'m", "'ll", "'d"};
  for (const std::string_view ending : endings)
    if (text.substr(begin).starts_with(ending)) return begin + ending.size();
  const std::size_t inside = text[begin] == ' ' ? begin + 1 : begin;
  if (inside < text.size()) {
    const CharacterClass found = class_of(character_at(text, inside).code);
    if (found != CharacterClass::blank) return end_of_class(text, inside, found);
  }
  // Of blanks, the last one belongs to what follows, unless it is the only one.
  std::size_t last = begin;
  std::size_t end = begin;
  while (end < text.size()) {
    const Character next = character_at(text, end);
    if (class_of(next.code) != CharacterClass::blank) return last > begin ? last : end;
    last = end;
    end += next.bytes;
  }
  return end;
}

std::size_t last_break(std::string_view text) {
  const auto is_line_feed_alone = [&](std::size_t k) {
    // Neighbours of one byte, so that neither is a part of a longer blank.
    const auto is_plain = [](char c) { return c > ' ' && c < 0x7F; };
    return text[k] == '\n' && is_plain(text[k - 1]) && is_plain(text[k + 1]);
  };
  for (std::size_t k = text.size() < 2 ? 0 : text.size() - 2; k > 0; --k)
    if (is_line_feed_alone(k)) return k + 1;
  return 0;
}

}  // namespace carousel
