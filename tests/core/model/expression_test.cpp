// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Sizes that decks compute, with the values that Python gives them.

#include "core/model/expression.hpp"

#include <gmock/gmock.h>

#include "tests/core/support.hpp"

namespace carousel {
namespace {

using testing::failure;
using ::testing::HasSubstr;

Number number_of(const std::string& name) {
  if (name == "w") return std::int64_t{32};
  if (name == "i") return std::int64_t{3};
  if (name == "half") return 0.5;
  fail(ExitCode::usage, "'{}' stands for no number", name);
}

Number value(std::string_view text) {
  return evaluate(text, number_of);
}

std::string refusal(std::string_view text) {
  return failure(ExitCode::usage, [&] { static_cast<void>(value(text)); });
}

TEST(Expression, OfWholeNumbersIsWhole) {
  const std::vector<std::pair<const char*, std::int64_t>> known = {
      {"7", 7},          {"w * 2**i", 256},
      {"2**3**2", 512},  {"-2**2", -4},
      {"2 - 3 - 4", -5}, {"-7 // 2", -4},
      {"7 // -2", -4},   {"-7 % 3", 2},
      {"7 % -3", -2},    {"(1 + 2) * 3", 9},
      {"1 + 2 * 3", 7},  {"+5", 5},
      {"--5", 5},        {"9223372036854775807", INT64_MAX},
      {"1**1000000", 1}, {"(-1)**1000001", -1},
      {"0**0", 1},       {" w\t// 2 ", 16},
      {"2*-3", -6}};
  for (const auto& [text, expected] : known) EXPECT_EQ(value(text), Number(expected)) << text;
}

TEST(Expression, WithARealIsReal) {
  const std::vector<std::pair<const char*, double>> known = {
      {"w / 2", 16},     {"1e-5", 1e-5},  {"0.02 / (2*12)**0.5", 0.02 / std::sqrt(24.0)},
      {"2**-1", 0.5},    {"half * 4", 2}, {"7.5 // 2", 3},
      {"-7.5 % 2", 0.5}, {".5 + 1", 1.5}, {"2.**3", 8}};
  for (const auto& [text, expected] : known) EXPECT_EQ(value(text), Number(expected)) << text;
}

TEST(Expression, SaysWhatIsWrong) {
  EXPECT_THAT(refusal("w *"), HasSubstr("in 'w *', a number is missing at its end"));
  EXPECT_THAT(refusal(""), HasSubstr("a number is missing"));
  EXPECT_THAT(refusal("(1 + 2"), HasSubstr("a closing parenthesis is missing"));
  EXPECT_THAT(refusal("1 2"), HasSubstr("'2' is not expected there"));
  EXPECT_THAT(refusal("1 $ 2"), HasSubstr("'$' is not expected there"));
  EXPECT_THAT(refusal("x + 1"), HasSubstr("'x' stands for no number"));
  EXPECT_THAT(refusal("1 // 0"), HasSubstr("divided by zero"));
  EXPECT_THAT(refusal("1 % 0.0"), HasSubstr("divided by zero"));
  EXPECT_THAT(refusal("2**63"), HasSubstr("too large"));
  EXPECT_THAT(refusal("9223372036854775808"), HasSubstr("too large"));
  EXPECT_THAT(refusal("9223372036854775807 + 1"), HasSubstr("too large"));
  EXPECT_THAT(refusal("3**9223372036854775807"), HasSubstr("too large"));
  EXPECT_THAT(refusal("1e308 * 10"), HasSubstr("not finite"));
  EXPECT_THAT(refusal("(-2)**0.5"), HasSubstr("not finite"));
  EXPECT_THAT(refusal(std::string(100, '(') + "1" + std::string(100, ')')), HasSubstr("nested"));
  EXPECT_THAT(refusal(std::string(100, '-') + "1"), HasSubstr("nested"));
  EXPECT_THAT(refusal(std::string(2000, '1')), HasSubstr("2000 characters"));
}

TEST(Expression, FillsBracesOfNames) {
  EXPECT_EQ(with_values("skip{3 - i}.{w}x", number_of), "skip0.32x");
  EXPECT_EQ(with_values("plain", number_of), "plain");
  EXPECT_EQ(with_values("{w / 2}", number_of), "16");
  for (const char* text : {"a{i", "a}", "{i{i}}"})
    EXPECT_THAT(failure(ExitCode::usage, [&] { static_cast<void>(with_values(text, number_of)); }),
                HasSubstr("brace"))
        << text;
  EXPECT_THAT(
      failure(ExitCode::usage, [&] { static_cast<void>(with_values("{half}", number_of)); }),
      HasSubstr("{half} is 0.5, no whole number"));
}

}  // namespace
}  // namespace carousel
