// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Texts, or tokens that others have made of them, as a file of tokens (core/data/token_file.hpp).
// Files may be larger than the memory.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/text/tokenizer.hpp"

namespace carousel {

/// tokens: files have them already, llm.c's (uint16 of version 1, uint32 of version 7, by their
/// first bytes) or uint16 alone, as nanoGPT writes them.
enum class TextForm : std::uint8_t { bytes, characters, gpt2, tokens };
constexpr auto words_of(TextForm) {
  return all_words<TextForm>("bytes", "characters", "gpt2", "tokens");
}

struct TokenImport {
  std::vector<std::string> paths;       // one behind the other
  std::vector<std::string> validation;  // likewise; empty: the last part of all
  double validation_fraction = 0;       // of the bytes, or of tokens, where no files are for it
  TextForm form = TextForm::bytes;
  std::string gpt2_tokens;  // the two files of GPT-2's tokenizer; of tokens: what they are of
  std::string gpt2_pairs;
  std::int64_t vocabulary = 0;  // of tokens without a tokenizer
  std::string source;
  std::string licence;
};

struct TokenCounts {
  std::int64_t train = 0;
  std::int64_t validation = 0;
  std::int64_t vocabulary = 0;
};

/// Is told how many bytes of all are done; what it throws ends the import.
using TokenProgress = std::function<void(std::int64_t done, std::int64_t all)>;

/// Writes `path`, which is whole or not there. Between files of GPT-2's tokens stands its
/// `<|endoftext|>`. Error(bad_data) with the place for what is no text of the tokenizer's, no token
/// of the vocabulary, and for files that are cut off; Error(usage) where options do not fit.
[[nodiscard]] TokenCounts import_tokens(const TokenImport& import, const std::string& path,
                                        const TokenProgress& progress);

}  // namespace carousel
