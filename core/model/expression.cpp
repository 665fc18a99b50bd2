// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/expression.hpp"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/base/check.hpp"

namespace carousel {
namespace {

constexpr std::size_t most_characters = 1000;
constexpr int most_nested = 64;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Python's grammar of the same operators: sums of products of signed powers.
class Parser {
 public:
  Parser(std::string_view text, const NumberLookup& lookup) : text_(text), lookup_(lookup) {}

  Number parse() {
    if (text_.size() > most_characters)
      fail(ExitCode::usage, "an expression has {} characters; it may have {}", text_.size(),
           most_characters);
    const Number value = sum();
    skip_blanks();
    if (at_ < text_.size()) wrong("{} is not expected there", shown(at_));
    return value;
  }

 private:
  template <class... Args>
  [[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ExitCode::usage, "in '{}', {}", text_, fmt::format(format, std::forward<Args>(args)...));
  }
  [[nodiscard]] std::string shown(std::size_t at) const {
    return at < text_.size() ? fmt::format("'{}'", text_[at]) : "its end";
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  /// Whether an operator follows, which is then behind.
  bool takes(std::string_view operation) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(operation)) return false;
    at_ += operation.size();
    return true;
  }

  Number sum() {
    Number value = product();
    while (true) {
      if (takes("+"))
        value = add(value, product());
      else if (takes("-"))
        value = add(value, negative(product()));
      else
        return value;
    }
  }

  Number product() {
    Number value = signed_power();
    while (true) {
      if (takes("//"))
        value = quotient(value, signed_power());
      else if (takes("/"))
        value = divide(value, signed_power());
      else if (takes("%"))
        value = remainder(value, signed_power());
      else if (takes("*"))  // what takes a power has left no ** behind
        value = multiply(value, signed_power());
      else
        return value;
    }
  }

  Number signed_power() {
    if (++nested_ > most_nested) wrong("too much is nested");
    Number value;
    if (takes("-"))
      value = negative(signed_power());
    else if (takes("+"))
      value = signed_power();
    else
      value = power();
    --nested_;
    return value;
  }

  /// To the right: 2**3**2 is 2**9, and 2**-1 is a half.
  Number power() {
    const Number base = operand();
    if (!takes("**")) return base;
    return raise(base, signed_power());
  }

  Number operand() {
    skip_blanks();
    if (at_ == text_.size()) wrong("a number is missing at its end");
    const char c = text_[at_];
    if (c == '(') {
      ++at_;
      const Number value = sum();
      if (!takes(")")) wrong("a closing parenthesis is missing");
      return value;
    }
    if (is_letter(c)) {
      const std::size_t begin = at_;
      while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
      return lookup_(std::string(text_.substr(begin, at_ - begin)));
    }
    if (is_digit(c) || c == '.') return literal();
    wrong("{} is not expected there", shown(at_));
  }

  Number literal() {
    const char* const begin = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    double real = 0;
    const auto parsed = std::from_chars(begin, end, real);
    if (parsed.ec != std::errc()) wrong("{} begins no number", shown(at_));
    const std::string_view digits(begin, static_cast<std::size_t>(parsed.ptr - begin));
    at_ += digits.size();
    std::int64_t whole = 0;
    const bool is_whole = digits.find_first_not_of("0123456789") == std::string_view::npos;
    if (!is_whole) return finite(real);
    if (std::from_chars(begin, parsed.ptr, whole).ec != std::errc()) too_large();
    return whole;
  }

  [[noreturn]] void too_large() const { wrong("a number becomes too large"); }
  [[nodiscard]] double finite(double real) const {
    if (!std::isfinite(real)) wrong("a number is not finite");
    return real;
  }

  /// Whole numbers stay whole where `whole(a, b, &result)` does not overflow.
  template <class Whole, class Real>
  [[nodiscard]] Number combine(const Number& a, const Number& b, Whole&& whole, Real&& real) const {
    const auto* const i = std::get_if<std::int64_t>(&a);
    const auto* const k = std::get_if<std::int64_t>(&b);
    if (i == nullptr || k == nullptr) return finite(real(as_real(a), as_real(b)));
    std::int64_t result = 0;
    if (whole(*i, *k, &result)) too_large();
    return result;
  }
  [[nodiscard]] Number add(const Number& a, const Number& b) const {
    return combine(
        a, b, [](auto i, auto k, auto* sum) { return __builtin_add_overflow(i, k, sum); },
        std::plus());
  }
  [[nodiscard]] Number multiply(const Number& a, const Number& b) const {
    return combine(
        a, b, [](auto i, auto k, auto* product) { return __builtin_mul_overflow(i, k, product); },
        std::multiplies());
  }
  [[nodiscard]] Number negative(const Number& a) const { return multiply(a, std::int64_t{-1}); }
  void refuse_zero(const Number& divisor) const {
    if (as_real(divisor) == 0) wrong("something is divided by zero");
  }
  [[nodiscard]] Number divide(const Number& a, const Number& b) const {
    refuse_zero(b);
    return finite(as_real(a) / as_real(b));
  }
  /// Rounded towards minus infinity, so that the remainder has the sign of the divisor.
  [[nodiscard]] Number quotient(const Number& a, const Number& b) const {
    refuse_zero(b);
    return combine(
        a, b,
        [](std::int64_t i, std::int64_t k, std::int64_t* result) {
          if (k == -1) return __builtin_sub_overflow(std::int64_t{0}, i, result);
          *result = i / k - (i % k != 0 && (i < 0) != (k < 0) ? 1 : 0);
          return false;
        },
        [](double x, double y) { return std::floor(x / y); });
  }
  [[nodiscard]] Number remainder(const Number& a, const Number& b) const {
    return add(a, negative(multiply(quotient(a, b), b)));
  }
  [[nodiscard]] Number raise(const Number& base, const Number& exponent) const {
    const auto* const times = std::get_if<std::int64_t>(&exponent);
    if (times == nullptr || *times < 0 || std::holds_alternative<double>(base))
      return finite(std::pow(as_real(base), as_real(exponent)));
    // What neither grows nor shrinks may be raised to anything; all else soon leaves 64 bits.
    const auto whole = std::get<std::int64_t>(base);
    if (whole == 0 || whole == 1) return *times == 0 ? std::int64_t{1} : whole;
    if (whole == -1) return *times % 2 == 0 ? std::int64_t{1} : whole;
    if (*times >= std::numeric_limits<std::int64_t>::digits + 1) too_large();
    Number value = std::int64_t{1};
    for (std::int64_t k = 0; k < *times; ++k) value = multiply(value, base);
    return value;
  }

  std::string_view text_;
  const NumberLookup& lookup_;
  std::size_t at_ = 0;
  int nested_ = 0;
};

}  // namespace

double as_real(const Number& number) {
  return std::visit([](auto value) { return static_cast<double>(value); }, number);
}

Number evaluate(std::string_view expression, const NumberLookup& lookup) {
  return Parser(expression, lookup).parse();
}

std::string with_values(std::string_view text, const NumberLookup& lookup) {
  std::string result;
  while (!text.empty()) {
    const std::size_t open = text.find_first_of("{}");
    result += text.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find_first_of("{}", open + 1);
    if (text[open] == '}' || close == std::string_view::npos || text[close] == '{')
      fail(ExitCode::usage, "a brace has no partner");
    const Number value = evaluate(text.substr(open + 1, close - open - 1), lookup);
    if (as_real(value) != std::floor(as_real(value)))
      fail(ExitCode::usage, "{{{}}} is {}, no whole number",
           text.substr(open + 1, close - open - 1), as_real(value));
    result += fmt::format("{:.0f}", as_real(value));
    text.remove_prefix(close + 1);
  }
  return result;
}

}  // namespace carousel
