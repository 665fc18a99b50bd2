// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The schema agrees with itself, and its help fits a terminal.

#include "app/schema.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "app/nearest.hpp"

namespace carousel {
namespace {

TEST(Schema, IsConsistent) {
  std::set<std::string> keys;
  for (const TableSpec& table : deck_tables()) {
    for (const KeySpec& spec : table.keys) {
      SCOPED_TRACE(spec.key());
      EXPECT_TRUE(keys.insert(spec.key()).second) << "twice";
      EXPECT_EQ(find_key(spec.key()), &spec);
      EXPECT_TRUE(spec.doc.ends_with('.'));
      for (const Condition& condition : spec.traits.only_with) {
        const KeySpec* other = find_key(condition.key);
        ASSERT_NE(other, nullptr);
        EXPECT_TRUE(keys.count(condition.key)) << "must come before what depends on it";
        EXPECT_EQ(other->traits.missing, Missing::standard);
        for (const std::string& value : condition.values) {
          const DeckValue standard = standard_value(*other);
          const auto* const decision = std::get_if<bool>(&standard.data);
          if (decision != nullptr)
            EXPECT_TRUE(value == "true" || value == "false");
          else
            EXPECT_THAT(other->allowed.choices, ::testing::Contains(value));
          // A key without effect has its default, which must not let others have one.
          const DeckValue let = decision != nullptr ? DeckValue{value == "true"} : DeckValue{value};
          EXPECT_TRUE(other->traits.only_with.empty() || let != standard);
        }
      }
    }
  }
}

TEST(Schema, DefaultsAreAllowed) {
  for (const TableSpec& table : deck_tables()) {
    for (const KeySpec& spec : table.keys) {
      if (spec.traits.missing != Missing::standard) continue;
      SCOPED_TRACE(spec.key());
      const DeckValue standard = standard_value(spec);
      if (const auto* text = std::get_if<std::string>(&standard.data)) {
        EXPECT_TRUE(spec.allowed.choices.empty() ||
                    std::ranges::count(spec.allowed.choices, *text));
      } else if (const auto* number = std::get_if<double>(&standard.data)) {
        EXPECT_TRUE(spec.allowed.contains(*number));
      } else if (const auto* integer = std::get_if<std::int64_t>(&standard.data)) {
        EXPECT_TRUE(spec.allowed.contains(static_cast<double>(*integer)));
      }
    }
  }
}

/// A value that the key has not by default.
DeckValue other_value(const KeySpec& spec, const DeckValue& standard) {
  switch (spec.type) {
    case KeyType::boolean:
      return {!std::get<bool>(standard.data)};
    case KeyType::integer:
      return {std::get<std::int64_t>(standard.data) + 1};
    case KeyType::number:
      return {std::get<double>(standard.data) + 0.5};
    case KeyType::string:
      break;
    case KeyType::integers:
      return {DeckValue::List{{std::int64_t{5}}, {std::int64_t{6}}}};
    case KeyType::numbers:
      return {DeckValue::List{{1.5}, {2.5}}};
    case KeyType::strings:
      return {DeckValue::List{
          {spec.allowed.choices.empty() ? std::string("else") : spec.allowed.choices.back()}}};
    case KeyType::list:
      return {DeckValue::List{{std::string("relu")}}};
    case KeyType::table:
      return {DeckValue::Table{{"w", {std::int64_t{3}}}}};
  }
  return {spec.allowed.choices.empty() ? "else" : spec.allowed.choices.back()};
}

/// The key that says which others a table has, if there is one.
const KeySpec* chooser_of(const TableSpec& table) {
  const auto found =
      std::ranges::find_if(table.keys, [](const KeySpec& spec) { return spec.traits.chooses; });
  return found == table.keys.end() ? nullptr : &*found;
}

/// Whether a table whose chooser has that word has the key.
bool has_key(const KeySpec* chooser, const std::string& word, const KeySpec& spec) {
  return std::ranges::all_of(spec.traits.only_with, [&](const Condition& condition) {
    return chooser == nullptr || condition.key != chooser->key() ||
           std::ranges::find(condition.values, word) != condition.values.end();
  });
}

// What a row binds is no other row's, and what is written is read: also every word of a choice.
TEST(Schema, EveryKeyHasAMemberOfItsOwn) {
  for (const TableSpec& table : deck_tables()) {
    const KeySpec* const chooser = chooser_of(table);
    const std::vector<std::string> words =
        chooser != nullptr ? chooser->allowed.choices : std::vector<std::string>{""};
    for (const std::string& kind : words) {
      RunConfig config;
      config.machine.emplace();
      if (chooser != nullptr) chooser->write(config, {kind});
      for (const KeySpec& spec : table.keys) {
        if (&spec == chooser || !has_key(chooser, kind, spec)) continue;
        SCOPED_TRACE(kind + " " + spec.key());
        const DeckValue standard = spec.standard(config);
        EXPECT_EQ(spec.read(config), standard) << "another key has written it";
        const DeckValue other = other_value(spec, standard);
        spec.write(config, other);
        EXPECT_EQ(spec.read(config), other);
        EXPECT_EQ(spec.standard(config), standard);
        for (const std::string& word : spec.allowed.choices) {
          const DeckValue value =
              spec.type == KeyType::strings ? DeckValue{DeckValue::List{{word}}} : DeckValue{word};
          spec.write(config, value);
          EXPECT_EQ(spec.read(config), value);
        }
      }
      if (chooser != nullptr) {
        EXPECT_EQ(chooser->read(config), DeckValue{kind});
      }
    }
  }
}

// beta2 is 0.999 for one kind and 0.99 for another.
TEST(Schema, HelpTellsTheDefaultOfEachKind) {
  const KeySpec& spec = *find_key("train.optimizer.beta2");
  RunConfig config;
  for (const std::string& kind : spec.traits.only_with.front().values) {
    find_key("train.optimizer.name")->write(config, {kind});
    const std::string standard = to_toml(spec.standard(config));
    EXPECT_THAT(spec.defaults, ::testing::HasSubstr(standard)) << kind;
    EXPECT_THAT(deck_help("train.optimizer"),
                ::testing::HasSubstr("default " + spec.defaults.substr(0, 5)));
  }
}

TEST(Schema, HelpTellsTheDefaultOfTheStruct) {
  const auto help_on = [help = deck_help()](const std::string& key) {
    const auto begin = help.find("\n  " + key + " ");
    return help.substr(begin, help.find('\n', begin + 1) - begin);
  };
  EXPECT_THAT(help_on("watchdog_seconds"),
              ::testing::HasSubstr(fmt::format("default {:.1f}", RunTable{}.watchdog_seconds)));
  EXPECT_THAT(help_on("momentum"),
              ::testing::HasSubstr(fmt::format("default {:.1f}", Sgd{}.momentum)));
  EXPECT_THAT(help_on("balance"), ::testing::Not(::testing::HasSubstr("required")));
  EXPECT_THAT(help_on("depth"), ::testing::HasSubstr("required"));
}

TEST(Schema, HelpFitsTheTerminalAndNamesEveryKey) {
  const std::string help = deck_help();
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  for (const TableSpec& table : deck_tables())
    for (const KeySpec& spec : table.keys)
      EXPECT_THAT(help, ::testing::HasSubstr("\n  " + spec.name + " ")) << spec.key();
}

TEST(Nearest, CountsEdits) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("stages", "stages"), 0);
  EXPECT_EQ(edit_distance("stgaes", "stages"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(Nearest, GuessesOnlyWhatIsSimilar) {
  const std::vector<std::string> keys = {"run.seed", "train.optimizer.momentum"};
  EXPECT_EQ(did_you_mean("run.sede", keys), " (did you mean run.seed?)");
  EXPECT_EQ(did_you_mean("optimizer.momentum", keys), " (did you mean train.optimizer.momentum?)");
  EXPECT_EQ(did_you_mean("whatever", keys), "");
  EXPECT_EQ(did_you_mean(std::string(100'000, 'x'), keys), "");
  EXPECT_EQ(did_you_mean("a", {}), "");
}

}  // namespace
}  // namespace carousel
