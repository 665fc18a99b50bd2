// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The digest of parameters behind receipts: 64 bits that differ when any bit of any number differs.
// It finds accidents, not forgers, and is a sum, so that kernels may compute it in any order.

#include <bit>
#include <cstdint>
#include <span>

namespace carousel {

/// What number `index` with these bits adds to a digest: the finalizer of SplitMix64 (Steele et al.
/// 2014, doi 10.1145/2660193.2660195) over bits and position.
[[nodiscard]] constexpr std::uint64_t digest_term(std::uint64_t index, std::uint64_t bits) {
  std::uint64_t z = bits ^ ((index + 1) * 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

[[nodiscard]] constexpr std::uint64_t digest_term(std::uint64_t index, float value) {
  return digest_term(index, std::uint64_t{std::bit_cast<std::uint32_t>(value)});
}

[[nodiscard]] constexpr std::uint64_t digest_term(std::uint64_t index, double value) {
  return digest_term(index, std::bit_cast<std::uint64_t>(value));
}

/// Digest of an array on the host: sum over k of digest_term(k, values[k]), modulo 2^64. Of a piece
/// of one, whose number `first` it begins with, the part of the sum.
template <class Real>
[[nodiscard]] constexpr std::uint64_t digest(std::span<const Real> values,
                                             std::uint64_t first = 0) {
  std::uint64_t sum = 0;
  for (std::size_t k = 0; k < values.size(); ++k) sum += digest_term(first + k, values[k]);
  return sum;
}

}  // namespace carousel
