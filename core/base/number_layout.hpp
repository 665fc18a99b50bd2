// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How files of other people's store numbers: integers and IEEE floating-point numbers of either
// byte order, and how they become those that kernels read.

#include <cstddef>
#include <cstdint>
#include <span>

namespace carousel {

enum class NumberKind : std::uint8_t { unsigned_integer, signed_integer, floating };

struct NumberLayout {
  NumberKind kind = NumberKind::floating;
  int bytes = 4;         // 1, 2, 4 or 8; of floating ones 2, 4 or 8
  bool swapped = false;  // the other byte order than this machine's

  [[nodiscard]] bool is_integer() const { return kind != NumberKind::floating; }
  bool operator==(const NumberLayout&) const = default;
};

/// Converts `to.size()` numbers, of which each begins `stride` bytes behind the one before, to
/// Number: float, double or std::int64_t, which takes integers alone. `from` need not be aligned.
template <class Number>
void decode_numbers(const NumberLayout& layout, const std::byte* from, std::int64_t stride,
                    std::span<Number> to);

}  // namespace carousel
