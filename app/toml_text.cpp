// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/toml_text.hpp"

#include <fmt/format.h>

#include "app/deck.hpp"
#include "core/base/check.hpp"

namespace carousel {
namespace {

// A run of dotted keys becomes as many nested tables, which the library frees by recursion.
constexpr int max_dots = 16;
constexpr int max_brackets = 32;

/// Walks over the text once, keeping line and column.
class TextCheck {
 public:
  TextCheck(std::string_view text, const std::string& path) : text_(text), where_{path, 1, 1} {}

  void run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') accept_text();
      } else if (c == '"' || c == '\'') {
        skip_string(c);
      } else {
        accept_syntax(c);
      }
    }
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ExitCode::usage, "{}: {}", to_string(where_),
         fmt::format(format, std::forward<Args>(args)...));
  }

  [[nodiscard]] bool next_is(std::string_view what) const {
    return text_.substr(at_, what.size()) == what;
  }

  void advance() {
    const auto byte = static_cast<unsigned char>(text_[at_++]);
    if (byte == '\n') {
      ++where_.line;
      where_.column = 1;
    } else if ((byte & 0xC0U) != 0x80U) {  // not the continuation of a UTF-8 character
      ++where_.column;
    }
  }

  /// One byte of a string or comment.
  void accept_text() {
    const auto byte = static_cast<unsigned char>(text_[at_]);
    const bool line_end = byte == '\n' || next_is("\r\n");
    if ((byte < 0x20 && byte != '\t' && !line_end) || byte == 0x7F)
      refuse("control character 0x{:02X}; a deck is plain text", byte);
    advance();
  }

  /// One byte outside strings and comments.
  void accept_syntax(char c) {
    if (static_cast<unsigned char>(c) >= 0x80)
      refuse("byte 0x{:02X}; outside strings and comments a deck is ASCII",
             static_cast<unsigned char>(c));
    if (c == '.' && ++dots_ > max_dots) refuse("more than {} dots in one key", max_dots);
    if (c != '.' && std::string_view("=[]{},\n").find(c) != std::string_view::npos) dots_ = 0;
    if (c == '[' || c == '{') ++brackets_;
    if (c == ']' || c == '}') --brackets_;
    if (brackets_ > max_brackets) refuse("more than {} nested brackets", max_brackets);
    accept_text();
  }

  /// A string of one line ends at the line's end at the latest, where the parser will complain.
  void skip_string(char quote) {
    const std::string triple(3, quote);
    const bool multi_line = next_is(triple);
    for (int i = multi_line ? 3 : 1; i > 0; --i) advance();
    while (at_ < text_.size()) {
      if (!multi_line && text_[at_] == '\n') return;
      if (multi_line ? next_is(triple) : text_[at_] == quote) {
        while (at_ < text_.size() && text_[at_] == quote) {  // up to two quotes may precede three
          advance();
          if (!multi_line) return;
        }
        return;
      }
      if (quote == '"' && text_[at_] == '\\') accept_text();  // whatever follows is not the end
      if (at_ < text_.size()) accept_text();
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Location where_;
  int dots_ = 0;
  int brackets_ = 0;
};

}  // namespace

void check_toml_text(std::string_view text, const std::string& path) {
  if (text.size() > max_deck_bytes)
    fail(ExitCode::usage, "{}: the deck is longer than {} bytes", path, max_deck_bytes);
  TextCheck(text, path).run();
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = [&](std::size_t k) -> unsigned {
      return at + k < text.size() ? static_cast<unsigned char>(text[at + k]) : 0U;
    };
    const unsigned first = byte(0);
    const std::size_t size = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if ((first >= 0x80 && first < 0xC2) || first > 0xF4) return false;
    for (std::size_t k = 1; k < size; ++k)
      if ((byte(k) & 0xC0U) != 0x80U) return false;
    // Neither longer than needed, nor halves of UTF-16, nor beyond Unicode.
    const unsigned second = byte(1);
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F)) return false;
    if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) return false;
    at += size;
  }
  return true;
}

}  // namespace carousel
