// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Words as GPT-2's pattern breaks a text into them, pairs that become tokens, and texts that come
// back from their tokens. Against another implementation: tests/app/tokens_test.py.

#include "core/text/tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/text/characters.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_word(text, at);
    all.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return all;
}

TEST(Words, AreThoseOfThePattern) {
  EXPECT_THAT(words("He's  50 years\n\nold; we'LL see..."),
              ElementsAre("He", "'s", " ", " 50", " years", "\n", "\n", "old", ";", " we", "'",
                          "LL", " see", "..."));
  EXPECT_THAT(words("  a"), ElementsAre(" ", " a"));
  EXPECT_THAT(words("a  "), ElementsAre("a", "  "));
  EXPECT_THAT(words("a \t b"), ElementsAre("a", " \t", " b"));
  EXPECT_THAT(words("\xC3\xA9t\xC3\xA9 \xE2\x82\xAC"
                    "5"),
              ElementsAre("\xC3\xA9t\xC3\xA9", " \xE2\x82\xAC", "5"));
  EXPECT_THAT(words("a\xC2\xA0"
                    "b"),
              ElementsAre("a", "\xC2\xA0", "b"));  // a blank of two bytes
  EXPECT_THAT(words("\xFF\xFE"
                    "a"),
              ElementsAre("\xFF\xFE", "a"));  // no UTF-8
}

TEST(Words, OfATextAreThoseOfItsPartsWhereItMayBeCut) {
  const std::string text = "one two\nthree  \n\n four\nfive 'll\n 6\nseven\n";
  const std::size_t cut = last_break(text);
  EXPECT_EQ(text.substr(cut), "seven\n");
  std::vector<std::string> parts = words(text.substr(0, cut));
  for (const std::string& word : words(text.substr(cut))) parts.push_back(word);
  EXPECT_EQ(parts, words(text));
  EXPECT_EQ(last_break("no line feed"), 0U);
  EXPECT_EQ(last_break(" \n "), 0U);
}

TEST(Tokenizer, PrintsBytesAsGpt2Does) {
  EXPECT_EQ(printed_bytes("a b\n"),
            "a\xC4\xA0"
            "b\xC4\x8A");  // aĠbĊ
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(bytes_of_printed(printed_bytes(all)), all);
  EXPECT_THAT(testing::failure(ExitCode::bad_data, [] { (void)bytes_of_printed("a b"); }),
              HasSubstr("stands for no byte"));
}

TEST(Tokenizer, HasATokenForEachByteOrCharacter) {
  std::vector<Token> tokens;
  Tokenizer::of_bytes().encode("A\xFF", tokens);
  EXPECT_THAT(tokens, ElementsAre(65, 255));
  const Tokenizer characters = Tokenizer::of_characters(std::vector<std::int32_t>{0xE9, 'b', 'a'});
  EXPECT_EQ(characters.size(), 3);
  tokens.clear();
  characters.encode(
      "b\xC3\xA9"
      "a",
      tokens);
  EXPECT_THAT(tokens, ElementsAre(1, 2, 0));
  EXPECT_EQ(characters.decode(tokens),
            "b\xC3\xA9"
            "a");
  EXPECT_EQ(characters.place_to_cut("ab\xC3"), 2U);
  EXPECT_EQ(characters.place_to_cut("ab\xC3\xA9"), 4U);
  EXPECT_THAT(testing::failure(ExitCode::bad_data, [&] { characters.encode("abc", tokens); }),
              HasSubstr("byte 2: no token stands for the character U+0063"));
}

/// All bytes, and what these pairs become in their order.
Tokenizer with_pairs(const std::vector<std::string>& pairs) {
  std::vector<std::string> pieces;
  for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  pieces.insert(pieces.end(), pairs.begin(), pairs.end());
  pieces.emplace_back(end_of_text);
  return {TokenizerKind::gpt2, pieces};
}

TEST(Tokenizer, JoinsThePairOfTheEarliestTokenFirst) {
  const Tokenizer tokenizer = with_pairs({"bc", "ab", "abc", "aa"});
  const auto encoded = [&](std::string_view text) {
    std::vector<Token> tokens;
    tokenizer.encode(text, tokens);
    EXPECT_EQ(tokenizer.decode(tokens), text);
    return tokens;
  };
  EXPECT_THAT(encoded("abc"), ElementsAre(258));       // bc, then a + bc
  EXPECT_THAT(encoded("aaa"), ElementsAre(259, 'a'));  // from the left
  EXPECT_THAT(encoded("ab ab"), ElementsAre(257, ' ', 257));
  EXPECT_THAT(encoded("a<|endoftext|>bc"), ElementsAre('a', 260, 256));
  EXPECT_EQ(tokenizer.end_of_text_token(), 260);
  // A word as long as a file must not take the square of its length.
  EXPECT_EQ(encoded(std::string(200'000, 'a')).size(), 100'000U);
}

TEST(Tokenizer, ReadsTheFilesOfGpt2) {
  const testing::TemporaryFolder folder;
  const std::string tokens = folder / "encoder.json";
  const std::string pairs = folder / "vocab.bpe";
  const auto write = [&](const std::string& more, const std::string& lines) {
    std::ofstream list(tokens);
    list << "{";
    for (int byte = 0; byte < 256; ++byte) {
      const std::string printed = printed_bytes(std::string(1, static_cast<char>(byte)));
      list << (byte > 0 ? ", " : "") << '"' << (printed == "\"" || printed == "\\" ? "\\" : "")
           << printed << "\": " << byte;
    }
    list << more << "}";
    std::ofstream(pairs) << "#version: 0.2\n" << lines;
  };
  const std::string good = R"(, "ab": 256, "abab": 257, "<|endoftext|>": 258)";
  write(good, "a b\nab ab\n");
  const Tokenizer tokenizer = Tokenizer::gpt2(tokens, pairs);
  EXPECT_EQ(tokenizer.size(), 259);
  std::vector<Token> found;
  tokenizer.encode("ababab", found);
  EXPECT_THAT(found, ElementsAre(257, 256));
  const auto refused = [&](ExitCode code) {
    return testing::failure(code, [&] { (void)Tokenizer::gpt2(tokens, pairs); });
  };
  write(good, "ab ab\na b\n");
  EXPECT_THAT(refused(ExitCode::usage), HasSubstr("not in the order of its token"));
  write(good, "a b\nab ba\n");
  EXPECT_THAT(refused(ExitCode::bad_data), HasSubstr("\"abba\", which is no token"));
  write(good, "a b\nabab\n");
  EXPECT_THAT(refused(ExitCode::bad_data), HasSubstr(":3: \"abab\" is no pair"));
  write(good, "a b\n");
  EXPECT_THAT(refused(ExitCode::usage), HasSubstr("of 259 tokens, 258 are bytes"));
  write(R"(, "ab": 300)", "a b\n");
  EXPECT_THAT(refused(ExitCode::bad_data), HasSubstr("has the number 300"));
  std::ofstream(tokens) << "[1, 2";
  EXPECT_THAT(refused(ExitCode::bad_data), HasSubstr("is no list of tokens"));
}

}  // namespace
}  // namespace carousel
