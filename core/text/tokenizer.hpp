// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Text to tokens and back. A token stands for a piece of text, which is some bytes; which ones, the
// tokenizer's list says.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/words.hpp"

namespace carousel {

/// none: nobody has said which text tokens stand for. bytes: one for each of the 256 bytes.
/// characters: one for each character that the text has. gpt2: pairs of pieces that are often side
/// by side become one (Sennrich et al. 2016, arXiv 1508.07909), in words as GPT-2 has them.
enum class TokenizerKind : std::uint8_t { none, bytes, characters, gpt2 };
constexpr auto words_of(TokenizerKind) {
  return all_words<TokenizerKind>("none", "bytes", "characters", "gpt2");
}

using Token = std::uint32_t;

/// What separates documents, where a tokenizer has it.
inline constexpr std::string_view end_of_text = "<|endoftext|>";

class Tokenizer {
 public:
  /// Of tokens without text.
  Tokenizer() = default;
  /// `pieces` are the texts of tokens 0, 1, 2 ... Of gpt2, the earlier of two pairs that could
  /// become one is the one whose token is smaller. Error(bad_data) where two are the same.
  Tokenizer(TokenizerKind kind, std::vector<std::string> pieces);

  [[nodiscard]] static Tokenizer of_bytes();
  /// Of all characters that are in some text, in the order of Unicode.
  [[nodiscard]] static Tokenizer of_characters(std::span<const std::int32_t> codes);
  /// From the two files of GPT-2, the list of tokens (encoder.json, vocab.json) and that of pairs
  /// (vocab.bpe, merges.txt). Error(bad_data) where they are no such files, Error(usage) where
  /// pairs are not in the order of their tokens.
  [[nodiscard]] static Tokenizer gpt2(const std::string& tokens, const std::string& pairs);

  [[nodiscard]] TokenizerKind kind() const { return kind_; }
  [[nodiscard]] std::span<const std::string> pieces() const { return pieces_; }
  [[nodiscard]] int size() const { return static_cast<int>(pieces_.size()); }
  /// The token that separates documents; -1 where there is none.
  [[nodiscard]] std::int64_t end_of_text_token() const { return end_of_text_; }

  /// Appends the tokens of a text, in which `<|endoftext|>` is one where there is such a token.
  /// Error(bad_data) for a character that has none, with its place in the text.
  void encode(std::string_view text, std::vector<Token>& tokens) const;
  /// Where a text that goes on may be cut, so that its parts have the tokens of the whole; 0 where
  /// it may not.
  [[nodiscard]] std::size_t place_to_cut(std::string_view text) const;
  [[nodiscard]] std::string decode(std::span<const Token> tokens) const;

 private:
  void encode_words(std::string_view text, std::vector<Token>& tokens) const;
  void encode_word(std::string_view word, std::vector<Token>& tokens) const;
  void encode_characters(std::string_view text, std::vector<Token>& tokens) const;

  TokenizerKind kind_ = TokenizerKind::none;
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, Token> tokens_;
  std::int64_t end_of_text_ = -1;
};

/// Bytes as the files of GPT-2 print them: visible characters of Latin-1 stand for themselves, the
/// other bytes in their order for the characters from 256 on.
[[nodiscard]] std::string printed_bytes(std::string_view bytes);
/// The other way. Error(bad_data) for a character that stands for no byte.
[[nodiscard]] std::string bytes_of_printed(std::string_view text);

}  // namespace carousel
