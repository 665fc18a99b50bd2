// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sizes that a deck computes: "w * 2**i". Whole numbers and reals, + - * / // % ** and parentheses,
// with the meaning that Python gives them, and names of other numbers.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>

namespace carousel {

using Number = std::variant<std::int64_t, double>;

[[nodiscard]] double as_real(const Number& number);

/// What a name stands for. Error(usage) where it stands for nothing.
using NumberLookup = std::function<Number(const std::string& name)>;

/// The value of an expression. Error(usage) that says what is wrong with it, also where a whole
/// number leaves 64 bits or a real is not finite.
[[nodiscard]] Number evaluate(std::string_view expression, const NumberLookup& lookup);

/// A text in which every "{expression}" has become its value: "conv.{i + 1}" -> "conv.3".
/// Error(usage) where one is not whole or a brace has no partner.
[[nodiscard]] std::string with_values(std::string_view text, const NumberLookup& lookup);

}  // namespace carousel
