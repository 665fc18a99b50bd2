// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Text in UTF-8, character by character, and the words that GPT-2 breaks it into.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace carousel {

struct Character {
  std::int32_t code = -1;  // in Unicode; -1: a byte that is of no character
  std::size_t bytes = 1;
};
/// The one that begins at a byte of a text.
[[nodiscard]] Character character_at(std::string_view text, std::size_t begin);

/// Where the word that begins there ends, as the pattern of GPT-2 (Radford et al. 2019, encoder.py)
/// has it: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+. Bytes that
/// are of no character are neither letters nor numbers nor blanks.
[[nodiscard]] std::size_t end_of_word(std::string_view text, std::size_t begin);

/// The last place in a text at which words end whatever follows or came before: behind a line feed
/// that stands alone between characters that are no blanks. 0 where there is none.
[[nodiscard]] std::size_t last_break(std::string_view text);

}  // namespace carousel
