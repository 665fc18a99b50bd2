// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Philox4x32-10, the counter-based generator of Salmon et al. (SC'11, doi 10.1145/2063384.2063405):
// a number is a pure function of key and counter, on hosts and in kernels alike. It keeps no state.
//
// A number of Carousel in ten lines of numpy (a and b are the first two words of the result):
//
//   def uniform01(key, stream, index):                            # three uint64
//       c = [index & M, index >> 32, stream & M, stream >> 32]    # M = 0xffffffff
//       k = [key & M, key >> 32]
//       for _ in range(10):
//           p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
//           c = [(q >> 32) ^ c[1] ^ k[0], q & M, (p >> 32) ^ c[3] ^ k[1], p & M]
//           k = [(k[0] + 0x9E3779B9) & M, (k[1] + 0xBB67AE85) & M]
//       return ((c[1] << 32 | c[0]) >> 11) * 2.0**-53

#include <cstdint>
#include <string_view>

namespace carousel {

/// Four words in or out of the generator.
struct PhiloxBlock {
  std::uint32_t w0 = 0;
  std::uint32_t w1 = 0;
  std::uint32_t w2 = 0;
  std::uint32_t w3 = 0;
  constexpr bool operator==(const PhiloxBlock&) const = default;
};

/// The 128 random bits that belong to (key, counter).
[[nodiscard]] constexpr PhiloxBlock philox4x32(PhiloxBlock counter, std::uint64_t key) {
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p = std::uint64_t{0xD2511F53} * counter.w0;
    const std::uint64_t q = std::uint64_t{0xCD9E8D57} * counter.w2;
    counter = {static_cast<std::uint32_t>(q >> 32) ^ counter.w1 ^ k0, static_cast<std::uint32_t>(q),
               static_cast<std::uint32_t>(p >> 32) ^ counter.w3 ^ k1,
               static_cast<std::uint32_t>(p)};
    k0 += 0x9E3779B9;  // golden ratio
    k1 += 0xBB67AE85;  // sqrt(3) - 1
  }
  return counter;
}

/// FNV-1a, 64 bits: turns the name of a parameter or a purpose into a number.
[[nodiscard]] constexpr std::uint64_t hash_name(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char character : name) {
    hash ^= static_cast<unsigned char>(character);
    hash *= 0x100000001b3;
  }
  return hash;
}

/// The key of everything that one purpose ("initial parameters", "permutation") draws in one run.
[[nodiscard]] constexpr std::uint64_t random_key(std::uint64_t seed, std::string_view purpose) {
  return seed ^ hash_name(purpose);
}

/// Number `index` of stream `stream`: uniform in [0, 1), a multiple of 2^-53.
[[nodiscard]] constexpr double uniform01(std::uint64_t key, std::uint64_t stream,
                                         std::uint64_t index) {
  const PhiloxBlock bits =
      philox4x32({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                  static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
                 key);
  const std::uint64_t mantissa = (std::uint64_t{bits.w1} << 32 | bits.w0) >> 11;
  return static_cast<double>(mantissa) * 0x1.0p-53;
}

}  // namespace carousel
