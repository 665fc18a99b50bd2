// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Slices select what Python's would.

#include "core/train/slices.hpp"

#include <gtest/gtest.h>

#include "core/base/check.hpp"

namespace carousel {
namespace {

std::vector<std::int64_t> selected(std::string_view text, std::int64_t steps) {
  const Slices slices(text);
  std::vector<std::int64_t> result;
  for (std::int64_t step = 0; step < steps; ++step)
    if (slices.contains(step, steps)) result.push_back(step);
  return result;
}

using Steps = std::vector<std::int64_t>;

TEST(Slices, SelectAsPython) {
  EXPECT_EQ(selected("", 5), Steps{});
  EXPECT_EQ(selected("::", 3), (Steps{0, 1, 2}));
  EXPECT_EQ(selected("0:2,::4", 9), (Steps{0, 1, 4, 8}));
  EXPECT_EQ(selected("1:8:3", 9), (Steps{1, 4, 7}));
  EXPECT_EQ(selected("-2:", 5), (Steps{3, 4}));
  EXPECT_EQ(selected(":-2", 5), (Steps{0, 1, 2}));
  EXPECT_EQ(selected("-9:2", 5), (Steps{0, 1}));
  EXPECT_EQ(selected("-1", 5), Steps{4});
  EXPECT_EQ(selected("-2, 0", 5), (Steps{0, 3}));
  EXPECT_EQ(selected("7", 5), Steps{});
}

TEST(Slices, RefuseWhatIsNone) {
  for (const char* text : {"x", "1:2:0", "::-1", ":::", ",", "1;2", "1.5", "9007199254740993"})
    EXPECT_THROW(Slices{text}, Error) << text;
}

}  // namespace
}  // namespace carousel
