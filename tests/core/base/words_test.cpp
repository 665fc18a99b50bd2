// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/base/words.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

namespace carousel {
namespace {

enum class Colour : std::uint8_t { red, green, blue };
constexpr auto words_of(Colour) {
  return all_words<Colour>("red", "light-green", "blue");
}

struct Nested {
  enum class State { on };
};

enum class Empty {};

static_assert(enumerators<Colour>() == 3);
static_assert(enumerators<Nested::State>() == 1);
static_assert(enumerators<Empty>() == 0);
static_assert(Worded<Colour> && !Worded<Empty> && !Worded<int>);

ExitCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ExitCode::done;
}

TEST(Words, LeadFromValuesToWordsAndBack) {
  EXPECT_STREQ(to_string(Colour::red), "red");
  EXPECT_STREQ(to_string(Colour::green), "light-green");
  EXPECT_STREQ(to_string(Colour::blue), "blue");
  for (const Colour colour : {Colour::red, Colour::green, Colour::blue})
    EXPECT_EQ(value_named<Colour>(to_string(colour)), colour);
}

TEST(Words, RefuseWhatIsNoEnumerator) {
  EXPECT_EQ(code_of([] { (void)to_string(static_cast<Colour>(3)); }), ExitCode::internal);
  EXPECT_EQ(code_of([] { (void)to_string(static_cast<Colour>(255)); }), ExitCode::internal);
  EXPECT_EQ(code_of([] { (void)value_named<Colour>("green"); }), ExitCode::internal);
  EXPECT_EQ(code_of([] { (void)value_named<Colour>(""); }), ExitCode::internal);
}

}  // namespace
}  // namespace carousel
