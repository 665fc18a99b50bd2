// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/text/tokenizer.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <queue>
#include <set>
#include <sstream>

#include "core/base/check.hpp"
#include "core/base/text.hpp"
#include "core/text/characters.hpp"

namespace carousel {
namespace {

constexpr int byte_values = 256;

/// The character that each byte is printed as.
const std::array<std::int32_t, byte_values>& printed_codes() {
  static const std::array<std::int32_t, byte_values> codes = [] {
    std::array<std::int32_t, byte_values> all = {};
    std::int32_t next = byte_values;
    for (int byte = 0; byte < byte_values; ++byte) {
      const bool visible =
          (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
      all[static_cast<std::size_t>(byte)] = visible ? byte : next++;
    }
    return all;
  }();
  return codes;
}

std::string utf8_of(std::int32_t code) {
  std::array<utf8proc_uint8_t, 4> bytes = {};
  const utf8proc_ssize_t size = utf8proc_encode_char(code, bytes.data());
  return {reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(size)};
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ExitCode::input_output, "{}: cannot be read", path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The list of tokens as a file has it: a number for each printed piece.
std::vector<std::string> read_pieces(const std::string& path) {
  const nlohmann::json json = nlohmann::json::parse(content_of(path), nullptr, false);
  if (!json.is_object() || json.empty())
    fail(ExitCode::bad_data, "{}: is no list of tokens, {{\"a\": 0, \"b\": 1, ...}}", path);
  std::vector<std::string> pieces(json.size());
  std::vector<bool> found(json.size(), false);
  for (const auto& [text, number] : json.items()) {
    const auto token = number.is_number_unsigned() ? number.get<std::uint64_t>() : pieces.size();
    if (token >= pieces.size() || found[token])
      fail(ExitCode::bad_data, "{}: token {} has the number {}; {} tokens are 0 to {}, each once",
           path, in_quotes(text), number.dump(), pieces.size(), pieces.size() - 1);
    found[token] = true;
    pieces[token] = bytes_of_printed(text);
  }
  return pieces;
}

/// What pairs become, in their order.
std::vector<std::string> read_pairs(const std::string& path) {
  std::istringstream lines(content_of(path));
  std::vector<std::string> pairs;
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const std::size_t blank = line.find(' ');
    if (blank == 0 || blank == std::string::npos || blank + 1 == line.size() ||
        line.find(' ', blank + 1) != std::string::npos)
      fail(ExitCode::bad_data, "{}:{}: {} is no pair of pieces", path, number, in_quotes(line));
    pairs.push_back(bytes_of_printed(line.erase(blank, 1)));
  }
  return pairs;
}

/// A run of a word's bytes that has become one piece.
struct Part {
  std::size_t begin = 0;
  std::size_t end = 0;
  int before = -1;
  int behind = -1;
  Token token = 0;
  bool is_gone = false;
};

/// Two parts that could become one: earlier tokens first, then those further to the left.
struct Pair {
  Token token = 0;
  int left = 0;
  std::size_t end = 0;

  [[nodiscard]] bool operator>(const Pair& other) const {
    return token != other.token ? token > other.token : left > other.left;
  }
};

}  // namespace

std::string printed_bytes(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += utf8_of(printed_codes()[static_cast<unsigned char>(byte)]);
  return text;
}

std::string bytes_of_printed(std::string_view text) {
  static const std::unordered_map<std::int32_t, char> bytes = [] {
    std::unordered_map<std::int32_t, char> all;
    for (int byte = 0; byte < byte_values; ++byte)
      all.emplace(printed_codes()[static_cast<std::size_t>(byte)], static_cast<char>(byte));
    return all;
  }();
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const Character next = character_at(text, at);
    const auto found = bytes.find(next.code);
    if (found == bytes.end())
      fail(ExitCode::bad_data, "{} has a character that stands for no byte", in_quotes(text));
    result += found->second;
    at += next.bytes;
  }
  return result;
}

Tokenizer::Tokenizer(TokenizerKind kind, std::vector<std::string> pieces)
    : kind_(kind), pieces_(std::move(pieces)) {
  for (std::size_t k = 0; k < pieces_.size(); ++k) {
    const auto [place, is_new] = tokens_.emplace(pieces_[k], static_cast<Token>(k));
    if (!is_new || pieces_[k].empty())
      fail(ExitCode::bad_data, "token {} stands for {}{}", k, in_quotes(pieces_[k]),
           is_new ? "" : fmt::format(", as token {} does", place->second));
  }
  if (kind_ != TokenizerKind::gpt2) return;
  for (int byte = 0; byte < byte_values; ++byte)
    if (!tokens_.contains(std::string(1, static_cast<char>(byte))))
      fail(ExitCode::bad_data, "no token stands for the byte {} alone", byte);
  if (const auto found = tokens_.find(std::string(end_of_text)); found != tokens_.end()) {
    end_of_text_ = found->second;
    tokens_.erase(found);  // no pair becomes it
  }
}

Tokenizer Tokenizer::of_bytes() {
  std::vector<std::string> pieces;
  for (int byte = 0; byte < byte_values; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  return {TokenizerKind::bytes, std::move(pieces)};
}

Tokenizer Tokenizer::of_characters(std::span<const std::int32_t> codes) {
  const std::set<std::int32_t> sorted(codes.begin(), codes.end());
  std::vector<std::string> pieces;
  for (const std::int32_t code : sorted) pieces.push_back(utf8_of(code));
  return {TokenizerKind::characters, std::move(pieces)};
}

Tokenizer Tokenizer::gpt2(const std::string& tokens, const std::string& pairs) {
  Tokenizer tokenizer(TokenizerKind::gpt2, read_pieces(tokens));
  const std::vector<std::string> joined = read_pairs(pairs);
  std::size_t known = byte_values + (tokenizer.end_of_text_ >= 0 ? 1 : 0);
  std::int64_t before = -1;
  for (const std::string& piece : joined) {
    const auto found = tokenizer.tokens_.find(piece);
    if (found == tokenizer.tokens_.end())
      fail(ExitCode::bad_data, "{}: a pair becomes {}, which is no token of {}", pairs,
           in_quotes(printed_bytes(piece)), tokens);
    if (std::int64_t{found->second} <= before)
      fail(ExitCode::usage,
           "{}: the pair that becomes {} is not in the order of its token in {}, as GPT-2's are",
           pairs, in_quotes(printed_bytes(piece)), tokens);
    before = found->second;
    ++known;
  }
  if (known != tokenizer.pieces_.size())
    fail(ExitCode::usage,
         "{}: of {} tokens, {} are bytes, pairs of {} or {}; others are not known here", tokens,
         tokenizer.pieces_.size(), known, pairs, end_of_text);
  return tokenizer;
}

void Tokenizer::encode(std::string_view text, std::vector<Token>& tokens) const {
  switch (kind_) {
    case TokenizerKind::none:
      fail(ExitCode::usage, "nobody has said which text tokens stand for");
    case TokenizerKind::bytes:
      for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
      return;
    case TokenizerKind::characters:
      return encode_characters(text, tokens);
    case TokenizerKind::gpt2:
      break;
  }
  while (!text.empty()) {
    const std::size_t end = end_of_text_ < 0 ? std::string_view::npos : text.find(end_of_text);
    encode_words(text.substr(0, end), tokens);
    if (end == std::string_view::npos) return;
    tokens.push_back(static_cast<Token>(end_of_text_));
    text.remove_prefix(end + end_of_text.size());
  }
}

void Tokenizer::encode_characters(std::string_view text, std::vector<Token>& tokens) const {
  for (std::size_t at = 0; at < text.size();) {
    const Character next = character_at(text, at);
    const auto found = tokens_.find(std::string(text.substr(at, next.bytes)));
    if (found == tokens_.end())
      fail(ExitCode::bad_data, "byte {}: {}", at,
           next.code < 0 ? "this is not UTF-8"
                         : fmt::format("no token stands for the character U+{:04X}", next.code));
    tokens.push_back(found->second);
    at += next.bytes;
  }
}

void Tokenizer::encode_words(std::string_view text, std::vector<Token>& tokens) const {
  struct Place {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  std::unordered_map<std::string_view, Place> known;  // where words of this text have their tokens
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_word(text, at);
    const std::string_view word = text.substr(at, end - at);
    const auto [found, is_new] = known.try_emplace(word);
    Place& place = found->second;
    if (is_new) {
      place.first = tokens.size();
      encode_word(word, tokens);
      place.count = tokens.size() - place.first;
    } else {
      for (std::size_t k = 0; k < place.count; ++k) tokens.push_back(tokens[place.first + k]);
    }
    at = end;
  }
}

void Tokenizer::encode_word(std::string_view word, std::vector<Token>& tokens) const {
  std::vector<Part> parts(word.size());
  std::priority_queue<Pair, std::vector<Pair>, std::greater<>> pairs;
  const auto look_at = [&](int left) {
    if (left < 0 || parts[left].behind < 0) return;
    const std::size_t begin = parts[left].begin;
    const std::size_t end = parts[parts[left].behind].end;
    const auto found = tokens_.find(std::string(word.substr(begin, end - begin)));
    if (found != tokens_.end()) pairs.push({found->second, left, end});
  };
  for (std::size_t k = 0; k < parts.size(); ++k) {
    parts[k] = {k, k + 1, static_cast<int>(k) - 1,
                k + 1 < parts.size() ? static_cast<int>(k) + 1 : -1,
                tokens_.at(std::string(1, word[k]))};
  }
  for (std::size_t k = 0; k < parts.size(); ++k) look_at(static_cast<int>(k));
  while (!pairs.empty()) {
    const Pair pair = pairs.top();
    pairs.pop();
    Part& left = parts[pair.left];
    // It may have become another one since.
    if (left.is_gone || left.behind < 0 || parts[left.behind].end != pair.end) continue;
    Part& right = parts[left.behind];
    right.is_gone = true;
    left.end = right.end;
    left.token = pair.token;
    left.behind = right.behind;
    if (left.behind >= 0) parts[left.behind].before = pair.left;
    look_at(left.before);
    look_at(pair.left);
  }
  for (const Part& part : parts)
    if (!part.is_gone) tokens.push_back(part.token);
}

std::size_t Tokenizer::place_to_cut(std::string_view text) const {
  if (kind_ == TokenizerKind::gpt2) return last_break(text);
  if (kind_ != TokenizerKind::characters) return text.size();
  // Not inside a character, of which a byte that goes on begins with the bits 10.
  std::size_t end = text.size();
  for (std::size_t k = 1; k <= 4 && k <= text.size(); ++k) {
    const auto byte = static_cast<unsigned char>(text[text.size() - k]);
    if ((byte & 0xC0U) == 0x80U) continue;
    if (character_at(text, text.size() - k).code < 0) end = text.size() - k;
    break;
  }
  return end;
}

std::string Tokenizer::decode(std::span<const Token> tokens) const {
  std::string text;
  for (const Token token : tokens) text += pieces_.at(token);
  return text;
}

}  // namespace carousel
