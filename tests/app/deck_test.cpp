// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Reading of decks: values with their places, overrides, and text that must be refused by one line
// instead of bringing the reader down.

#include "app/deck.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "app/toml_text.hpp"
#include "core/base/check.hpp"

namespace carousel {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Deck parse(std::string_view text, const std::vector<std::string>& overrides = {}) {
  return parse_deck(text, "x.toml", overrides);
}

/// The one line a deck is refused with; every refusal is the user's mistake.
std::string refusal(std::string_view text, const std::vector<std::string>& overrides = {}) {
  try {
    parse(text, overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos);
    return message;
  }
  ADD_FAILURE() << "the text was accepted";
  return "";
}

template <class T>
DeckValue value(T data) {
  return {std::move(data)};
}

TEST(Deck, KeepsTypesAndPlaces) {
  const Deck deck = parse("[run]\nname = \"a\"\nseed = 3\n\n[train.optimizer]\n  rate = 5e-2\n");
  ASSERT_EQ(deck.entries.size(), 3U);
  EXPECT_EQ(deck.entries[0].value, value(std::string("a")));
  EXPECT_EQ(deck.entries[1].value, value(std::int64_t{3}));
  EXPECT_EQ(deck.entries[2].key, "train.optimizer.rate");
  EXPECT_EQ(deck.entries[2].value, value(0.05));
  EXPECT_EQ(to_string(deck.entries[2].location), "x.toml:6:3");
  ASSERT_EQ(deck.tables.size(), 3U);
  EXPECT_EQ(deck.tables[0].name, "run");
}

TEST(Deck, AMarkOfTheEncodingIsNoText) {
  const Deck deck = parse("\xEF\xBB\xBF[run]\nname = \"a\"\n");
  ASSERT_EQ(deck.entries.size(), 1U);
  EXPECT_EQ(deck.entries[0].key, "run.name");
  EXPECT_EQ(to_string(deck.tables.at(0).location), "x.toml:1:2");
  EXPECT_EQ(refusal("\xEF\xBB\xBF[run]\nname = \xFF\n").substr(0, 10), "x.toml:2:8");
  EXPECT_THAT(refusal("[run]\n\xEF\xBB\xBFname = \"a\"\n"), HasSubstr("byte 0xEF"));
  for (const char* mark : {"\xFF\xFE[", "\xFE\xFF["})
    EXPECT_THAT(refusal(mark), HasSubstr("x.toml: the deck is UTF-16; save it as UTF-8"));
}

TEST(TomlText, KnowsUtf8) {
  for (const char* text : {"", "a", "\xC3\xA9", "\xE2\x98\x83", "\xF0\x9D\x84\x9E", "\xED\x9F\xBF",
                           "\xEE\x80\x80", "\xF4\x8F\xBF\xBF"})
    EXPECT_TRUE(is_utf8(text)) << text;
  for (const char* text :
       {"\x80", "\xFF", "\xC0\xAF", "\xC1\xBF", "\xC3", "\xC3 ", "\xE2\x98", "\xE0\x9F\xBF",
        "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "a\xE9"})
    EXPECT_FALSE(is_utf8(text)) << text;
}

TEST(Deck, QuotedKeysDoNotPassForDottedOnes) {
  EXPECT_EQ(parse("\"run.seed\" = 3\n").entries.at(0).key, "\"run.seed\"");
}

TEST(Deck, OverridesReplaceAndAdd) {
  const Deck deck = parse("[a]\nx = 1\ny = 2\n", {"a.x=[64, 10]", "a.z=dp", "b.w=true"});
  ASSERT_EQ(deck.entries.size(), 4U);
  EXPECT_EQ(deck.entries[0].key, "a.y");
  EXPECT_EQ(to_toml(deck.entries[1].value), "[64, 10]");
  EXPECT_EQ(deck.entries[2].value, value(std::string("dp")));
  EXPECT_EQ(deck.entries[3].value, value(true));
  EXPECT_EQ(to_string(deck.entries[3].location), "command line");
}

TEST(Deck, OverridesRemove) {
  const Deck deck = parse("[a]\nx = 1\ny = 2\n", {"a.x=", "a.z=", "a.w=\"\""});
  ASSERT_EQ(deck.entries.size(), 2U);
  EXPECT_EQ(deck.entries[0].key, "a.y");
  EXPECT_EQ(deck.entries[1].value, value(std::string()));
  ASSERT_EQ(deck.removed.size(), 2U);
  EXPECT_EQ(deck.removed[1].key, "a.z");
}

TEST(Deck, RefusesBadOverrides) {
  EXPECT_THAT(refusal("", {"a.x"}), HasSubstr("table.key=value"));
  EXPECT_THAT(refusal("", {"=3"}), HasSubstr("table.key=value"));
  EXPECT_THAT(refusal("", {"a.x=", "a.x=2"}), HasSubstr("twice"));
  EXPECT_THAT(refusal("", {"a.x=[1, 2"}), HasSubstr("not a TOML value"));
  EXPECT_THAT(refusal("", {"a.x=1", "a.x=2"}), HasSubstr("twice"));
}

TEST(Deck, OverrideBringsNoFurtherKeys) {
  const Deck deck = parse("", {"a.x=1\ny = 2"});
  ASSERT_EQ(deck.entries.size(), 1U);
  EXPECT_EQ(deck.entries[0].value, value(std::string("1\ny = 2")));
}

TEST(Deck, RefusesWithPlace) {
  EXPECT_THAT(refusal("[run]\nname = \n"), StartsWith("x.toml:2:"));
  EXPECT_THAT(refusal("[run]\nseed = 1\nseed = 2\n"), StartsWith("x.toml:3:"));
  EXPECT_THAT(refusal("[run]\n[run]\n"), StartsWith("x.toml:2:"));
  EXPECT_THAT(refusal("a = 1\nb = \x01\n"), StartsWith("x.toml:2:5: control character"));
  EXPECT_THAT(refusal("a = \"\x1b[31m\"\n"), StartsWith("x.toml:1:6: control character"));
  EXPECT_THAT(refusal("a = 1 # \x7f\n"), StartsWith("x.toml:1:9: control character"));
}

// Text on which toml++ 3.3.0 reads past its buffer, trips an assertion or runs out of stack.
TEST(Deck, SurvivesWhatTheLibraryDoesNot) {
  EXPECT_THAT(refusal("[\n"), StartsWith("x.toml:"));
  EXPECT_THAT(refusal("[a\xc3\xa0n]\n"), StartsWith("x.toml:1:3: byte 0xC3"));
  std::string header = "[a";
  for (int i = 0; i < 200'000; ++i) header += ".a";
  EXPECT_THAT(refusal(header + "]\n"), HasSubstr("longer than"));
  EXPECT_THAT(refusal(header.substr(0, 60'000) + "]\n"), HasSubstr("dots in one key"));
  std::string quoted_header = "[";
  for (int i = 0; i < 10'000; ++i) quoted_header += "'a' . ";
  EXPECT_THAT(refusal(quoted_header + "b]\n"), HasSubstr("dots in one key"));
  EXPECT_THAT(refusal("a = " + std::string(30'000, '[')), HasSubstr("brackets"));
  std::string tables = "a = ";
  for (int i = 0; i < 5'000; ++i) tables += "{a=";
  EXPECT_THAT(refusal(tables), HasSubstr("brackets"));
}

TEST(Deck, StringsAndCommentsMayHoldAnyLanguage) {
  const Deck deck =
      parse("# \xc3\xbc\na = \"\xc3\xbc\"\nb = '''\n'' \xc3\xbc'''\nc = \"\\\"\" # \"\n");
  EXPECT_EQ(deck.entries.at(0).value, value(std::string("\xc3\xbc")));
  EXPECT_EQ(deck.entries.at(2).value, value(std::string("\"")));
}

TEST(Deck, ValuesReadBackAsWritten) {
  for (const char* text : {"true", "-7", "0.1", "1e-300", "123456789.0", "-0.0", "5.0",
                           "\"a \\\" b \\\\ \\u0007\"", "[1, 2.5, \"x\", [true]]", "[]"}) {
    const std::optional<DeckValue> once = parse_value(text);
    ASSERT_TRUE(once) << text;
    const std::optional<DeckValue> twice = parse_value(to_toml(*once));
    ASSERT_TRUE(twice) << to_toml(*once);
    EXPECT_EQ(*once, *twice) << text;
  }
}

TEST(Deck, MessagesHoldNoControlCharacters) {
  EXPECT_EQ(printable("a\x1b[31m\n"), "a\\u001B[31m\\u000A");
  EXPECT_EQ(in_quotes(std::string(100, 'x')), "\"" + std::string(60, 'x') + "...\"");
}

// Not a search for new faults, but a net under changes: the seed is fixed.
TEST(Deck, MutatedTextIsAcceptedOrRefused) {
  const std::string original =
      "# deck\n[run]\nname = \"digits\"\nseed = 1\n[model]\nwidths = [64, 64, 10]\n"
      "[train.optimizer]\nlearning_rate = 5e-2\nnesterov = true\ndate = 2026-01-01T00:00:00Z\n"
      "text = '''\nmany\nlines'''\ninline = {a = 1, b.c = [ {d = 2} ]}\n[[list]]\nx = inf\n";
  const std::string tokens = "[]{}=.,\"'#\n\r\t \\0123456789abefinu+-_:TZx\xc3\xa0\xff\x01";
  std::mt19937 random(20240803);
  const auto below = [&](std::size_t n) { return random() % n; };
  for (int round = 0; round < 20'000; ++round) {
    std::string text = original;
    for (std::size_t changes = 1 + below(8); changes > 0 && !text.empty(); --changes) {
      const std::size_t at = below(text.size());
      const std::string token(1, tokens[below(tokens.size())]);
      switch (below(4)) {
        case 0:
          text.replace(at, 1, token);
          break;
        case 1:
          text.insert(at, token);
          break;
        case 2:
          text.erase(at, 1 + below(6));
          break;
        default:
          text.insert(at, text.substr(below(text.size()), below(20)));
          break;
      }
    }
    try {
      parse(text);
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ExitCode::usage) << error.what();
    }
  }
}

}  // namespace
}  // namespace carousel
