// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers and texts of users as people read them. Files for programs keep them plain.

#include <fmt/format.h>
#include <fnmatch.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace carousel {

/// What programs of Windows begin a text with.
inline constexpr std::string_view utf8_mark = "\xEF\xBB\xBF";

/// "512 B", "68.0 KiB", "1.5 GiB": binary units, one decimal.
[[nodiscard]] inline std::string human_bytes(double bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

[[nodiscard]] inline std::string human_bytes(std::int64_t bytes) {
  return human_bytes(static_cast<double>(bytes));
}

/// "1,281,167", of what cannot be negative.
[[nodiscard]] inline std::string human_count(std::int64_t count) {
  if (count < 1000) return std::to_string(count);
  return fmt::format("{},{:03}", human_count(count / 1000), count % 1000);
}

/// "69.6%".
[[nodiscard]] inline std::string human_part(std::int64_t part, std::int64_t whole) {
  return fmt::format("{:.1f}%", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

/// Text of a user with control characters escaped, so that it stays on its line.
[[nodiscard]] inline std::string printable(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    result += byte < 0x20 || byte == 0x7F ? fmt::format("\\u{:04X}", byte) : std::string(1, c);
  }
  return result;
}

/// `"` and `\` and control characters as TOML escapes.
[[nodiscard]] inline std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return printable(result);
}

/// Text of a user for messages: in quotes, shortened and printable.
[[nodiscard]] inline std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string shown = escaped(text.substr(0, longest));
  for (char& c : shown)  // a cut UTF-8 character would spoil the terminal
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  return fmt::format("\"{}{}\"", shown, text.size() > longest ? "..." : "");
}

/// Breaks `text` between words so that no line, indented by that many spaces, passes column 80.
[[nodiscard]] inline std::string wrapped(std::string_view text, std::size_t indent) {
  const std::size_t width = 80 - indent;
  std::string result;
  while (text.size() > width) {
    std::size_t end = text.rfind(' ', width);
    if (end == std::string_view::npos || end == 0) end = width;
    result += fmt::format("{:{}}{}\n", "", indent, text.substr(0, end));
    const std::size_t begin = text.find_first_not_of(' ', end);
    if (begin == std::string_view::npos) return result;
    text.remove_prefix(begin);
  }
  return result + fmt::format("{:{}}{}\n", "", indent, text);
}

/// Whether a name is one of those that a pattern stands for: * for any letters, ? for any one.
[[nodiscard]] inline bool matches(const std::string& name, const std::string& pattern) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

/// A NaN has a sign bit, too, which would print as "-nan" and means nothing.
[[nodiscard]] inline double unsigned_nan(double value) {
  return std::isnan(value) ? std::abs(value) : value;
}

}  // namespace carousel
