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
      EXPECT_FALSE(spec.standard && spec.required);
      EXPECT_TRUE(spec.doc.ends_with('.'));
      for (const Condition& condition : spec.only_with) {
        const KeySpec* other = find_key(condition.key);
        ASSERT_NE(other, nullptr);
        EXPECT_TRUE(keys.count(condition.key)) << "must come before what depends on it";
        EXPECT_TRUE(other->standard);
        for (const std::string& value : condition.values)
          EXPECT_THAT(other->choices, ::testing::Contains(value));
      }
    }
  }
}

TEST(Schema, DefaultsAreAllowed) {
  for (const TableSpec& table : deck_tables()) {
    for (const KeySpec& spec : table.keys) {
      if (!spec.standard) continue;
      SCOPED_TRACE(spec.key());
      if (const auto* text = std::get_if<std::string>(&spec.standard->data)) {
        EXPECT_TRUE(spec.choices.empty() ||
                    std::count(spec.choices.begin(), spec.choices.end(), *text) == 1);
      } else if (const auto* number = std::get_if<double>(&spec.standard->data)) {
        EXPECT_TRUE(spec.range.contains(*number));
      } else if (const auto* integer = std::get_if<std::int64_t>(&spec.standard->data)) {
        EXPECT_TRUE(spec.range.contains(static_cast<double>(*integer)));
      }
    }
  }
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
