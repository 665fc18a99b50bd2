// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// A key of an enum: its choices are the words of the enum, and each of them is read and written.

#include "core/deck/row.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "core/base/check.hpp"

namespace carousel {
namespace {

enum class Colour : std::uint8_t { red, green, blue };
constexpr auto words_of(Colour) {
  return all_words<Colour>("red", "light-green", "blue");
}

struct Paint {
  Colour colour = Colour::green;
};

TEST(Row, OfAnEnumTakesItsWords) {
  const Row<Paint> row = key("colour", &Paint::colour, one_of<Colour>(), "What it looks like.");
  EXPECT_EQ(row.type, KeyType::string);
  EXPECT_EQ(row.allowed.choices, (std::vector<std::string>{"red", "light-green", "blue"}));
  EXPECT_EQ(row.standard(Paint()), DeckValue{std::string("light-green")});
  Paint paint;
  for (const Colour colour : {Colour::red, Colour::green, Colour::blue}) {
    const DeckValue word{row.allowed.choices[static_cast<std::size_t>(colour)]};
    row.write(paint, word);
    EXPECT_EQ(paint.colour, colour);
    EXPECT_EQ(row.read(paint), word);
  }
  EXPECT_THROW(row.write(paint, {std::string("green")}), Error);
}

}  // namespace
}  // namespace carousel
