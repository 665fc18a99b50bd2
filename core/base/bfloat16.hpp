// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// bfloat16: the upper half of a float of IEEE 754, for storage. Sums are never kept in it.

#include <bit>
#include <cstdint>

namespace carousel {

struct Bfloat16 {
  std::uint16_t bits = 0;
  bool operator==(const Bfloat16&) const = default;
};

[[nodiscard]] constexpr float to_float(Bfloat16 value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

/// To the nearest, of two to the even one; what is too large becomes infinite, and a NaN stays one.
[[nodiscard]] constexpr Bfloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
  const std::uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
  return {static_cast<std::uint16_t>(is_nan ? (bits >> 16) | 0x40 : rounded >> 16)};
}

}  // namespace carousel
