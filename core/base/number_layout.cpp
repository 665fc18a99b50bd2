// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/base/number_layout.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/base/check.hpp"

namespace carousel {
namespace {

template <class Bits>
Bits swapped_bytes(Bits bits) {
  Bits result = 0;
  for (std::size_t k = 0; k < sizeof(Bits); ++k) {
    result = static_cast<Bits>(result << 8 | (bits & 0xff));
    bits = static_cast<Bits>(bits >> 8);
  }
  return result;
}

/// IEEE 754's binary16.
float from_half(std::uint16_t bits) {
  const bool negative = (bits & 0x8000) != 0;
  const int exponent = bits >> 10 & 0x1f;
  const int mantissa = bits & 0x3ff;
  float value = 0;
  if (exponent == 0x1f)
    value = mantissa == 0 ? std::numeric_limits<float>::infinity()
                          : std::numeric_limits<float>::quiet_NaN();
  else if (exponent == 0)
    value = std::ldexp(static_cast<float>(mantissa), -24);
  else
    value = std::ldexp(static_cast<float>(mantissa | 0x400), exponent - 25);
  return negative ? -value : value;
}

/// What is stored in the bits of one number.
template <class Stored, class Bits>
auto value_of(Bits bits) {
  if constexpr (sizeof(Bits) == 2 && std::is_floating_point_v<Stored>)
    return from_half(bits);
  else
    return std::bit_cast<Stored>(bits);
}

template <class Stored, class Bits, bool Swaps, class Number>
void decode(const std::byte* from, std::int64_t stride, std::span<Number> to) {
  for (std::size_t k = 0; k < to.size(); ++k) {
    Bits bits = 0;
    std::memcpy(&bits, from + static_cast<std::int64_t>(k) * stride, sizeof bits);
    if constexpr (Swaps) bits = swapped_bytes(bits);
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): one byte is a number here, no letter
    to[k] = static_cast<Number>(value_of<Stored>(bits));
  }
}

template <class Stored, class Bits, class Number>
void decode(bool swaps, const std::byte* from, std::int64_t stride, std::span<Number> to) {
  static_assert(sizeof(Bits) <= sizeof(Stored));
  // Numbers side by side, which compilers turn into vector instructions.
  if (stride == sizeof(Bits) && !swaps) return decode<Stored, Bits, false>(from, sizeof(Bits), to);
  if (swaps) return decode<Stored, Bits, true>(from, stride, to);
  decode<Stored, Bits, false>(from, stride, to);
}

}  // namespace

template <class Number>
void decode_numbers(const NumberLayout& layout, const std::byte* from, std::int64_t stride,
                    std::span<Number> to) {
  const auto as = [&]<class Stored, class Bits>() {
    decode<Stored, Bits>(layout.swapped, from, stride, to);
  };
  if (layout.kind == NumberKind::floating) {
    if constexpr (!std::is_integral_v<Number>) {
      if (layout.bytes == 2) return as.template operator()<float, std::uint16_t>();
      if (layout.bytes == 4) return as.template operator()<float, std::uint32_t>();
      if (layout.bytes == 8) return as.template operator()<double, std::uint64_t>();
    }
  } else if (layout.kind == NumberKind::signed_integer) {
    if (layout.bytes == 1) return as.template operator()<std::int8_t, std::uint8_t>();
    if (layout.bytes == 2) return as.template operator()<std::int16_t, std::uint16_t>();
    if (layout.bytes == 4) return as.template operator()<std::int32_t, std::uint32_t>();
    if (layout.bytes == 8) return as.template operator()<std::int64_t, std::uint64_t>();
  } else {
    if (layout.bytes == 1) return as.template operator()<std::uint8_t, std::uint8_t>();
    if (layout.bytes == 2) return as.template operator()<std::uint16_t, std::uint16_t>();
    if (layout.bytes == 4) return as.template operator()<std::uint32_t, std::uint32_t>();
    if (layout.bytes == 8) return as.template operator()<std::uint64_t, std::uint64_t>();
  }
  CAROUSEL_CHECK(false, "{} numbers of {} bytes", layout.is_integer() ? "whole" : "floating",
                 layout.bytes);
}

template void decode_numbers(const NumberLayout&, const std::byte*, std::int64_t, std::span<float>);
template void decode_numbers(const NumberLayout&, const std::byte*, std::int64_t,
                             std::span<double>);
template void decode_numbers(const NumberLayout&, const std::byte*, std::int64_t,
                             std::span<std::int64_t>);

}  // namespace carousel
