// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Exponential and error function without branches or calls in single precision, so that compilers
// make vectors of loops over them. In double precision they are those of Kokkos.

#include <cstdint>
#include <type_traits>

#include "core/base/view.hpp"

namespace carousel::detail {

/// exp(x) - 1 = power (1 + less) - 1 for x <= 0 in single precision, with a power of two.
struct Exponential {
  float less;
  float power;
};

/// Cody & Waite's reduction to |r| <= ln 2 / 2, then Taylor's polynomial of degree 7. `clamped` is
/// not below -87, so that the power is a normal number.
[[nodiscard]] KOKKOS_INLINE_FUNCTION Exponential reduced(float clamped) {
  constexpr float log2_e = 1.44269504F;
  constexpr float ln2_high = 0.693359375F;  // few bits, so that its multiples are exact
  constexpr float ln2_low = -2.12194440e-4F;
  constexpr float shifter = 12582912.0F;  // 1.5 * 2^23: adding it rounds to a whole number
  const float whole = (clamped * log2_e + shifter) - shifter;
  const float r = (clamped - whole * ln2_high) - whole * ln2_low;
  float p = 1.98412698e-4F;
  p = p * r + 1.38888889e-3F;
  p = p * r + 8.33333333e-3F;
  p = p * r + 4.16666667e-2F;
  p = p * r + 1.66666667e-1F;
  p = p * r + 0.5F;
  const auto exponent = static_cast<std::int32_t>(whole) + 127;
  return {p * r * r + r, Kokkos::bit_cast<float>(exponent << 23)};
}

/// exp(x) for x <= 0, to two units in the last place; what would be no normal number is 0.
[[nodiscard]] KOKKOS_INLINE_FUNCTION real exponential(real x) {
  if constexpr (std::is_same_v<real, double>) {
    return Kokkos::exp(x);
  } else {
    constexpr float least = -87.0F;
    const Exponential at = reduced(x < least ? least : x);
    return x < least ? 0.0F : (at.less + 1.0F) * at.power;
  }
}

/// exp(x) - 1 for x <= 0, to a few units in the last place, however small x is.
[[nodiscard]] KOKKOS_INLINE_FUNCTION real exponential_less_one(real x) {
  if constexpr (std::is_same_v<real, double>) {
    return Kokkos::expm1(x);
  } else {
    constexpr float least = -87.0F;
    const Exponential at = reduced(x < least ? least : x);
    return at.power * at.less + (at.power - 1.0F);
  }
}

/// The logistic function 1 / (1 + exp(-x)), and 1 less that, neither of which loses bits where it
/// is small.
struct Logistic {
  real value;
  real rest;
};
[[nodiscard]] KOKKOS_INLINE_FUNCTION Logistic logistic_at(real x) {
  const real tail = exponential(x < 0 ? x : -x);
  const real large = 1 / (1 + tail);
  const real small = tail * large;
  return x < 0 ? Logistic{small, large} : Logistic{large, small};
}

/// The normal distribution P(z <= x) and its density at x.
struct Normal {
  real distribution;
  real density;
};

/// Abramowitz & Stegun 1964, 7.1.26: the error function to 1.5e-7.
[[nodiscard]] KOKKOS_INLINE_FUNCTION Normal normal_at(real x) {
  constexpr double inverse_sqrt_2 = 0.70710678118654752440;
  constexpr double inverse_sqrt_2_pi = 0.39894228040143267794;
  if constexpr (std::is_same_v<real, double>) {
    return {static_cast<real>(0.5 * Kokkos::erfc(-x * inverse_sqrt_2)),
            static_cast<real>(inverse_sqrt_2_pi * Kokkos::exp(-0.5 * x * x))};
  } else {
    const float size = x < 0 ? -x : x;
    const float bell = exponential(-0.5F * x * x);
    const float t = 1.0F / (1.0F + 0.3275911F * static_cast<float>(inverse_sqrt_2) * size);
    float p = 1.061405429F;
    p = p * t - 1.453152027F;
    p = p * t + 1.421413741F;
    p = p * t - 0.284496736F;
    p = p * t + 0.254829592F;
    const float tail = 0.5F * p * t * bell;  // P(z > |x|)
    return {x < 0 ? tail : 1.0F - tail, static_cast<float>(inverse_sqrt_2_pi) * bell};
  }
}

}  // namespace carousel::detail
