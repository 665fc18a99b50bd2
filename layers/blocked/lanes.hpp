// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The numbers of one vector register of the host as one value. What is computed with them is
// written elsewhere.

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/base/vectors.hpp"
#include "layers/stored.hpp"

#if defined(__AVX512F__) && !defined(CAROUSEL_REAL_DOUBLE)
#define CAROUSEL_LANES_512
#include <immintrin.h>
#endif

// Arrays of registers stay in registers only when the loops over them are unrolled.
#define CAROUSEL_UNROLL_ALL _Pragma("GCC unroll 36")

namespace carousel::blocked {

// Left to itself, gcc 12 shuffles and spills sums; so a register is one value of the vector
// extension that gcc and clang share.
using Lanes = real __attribute__((vector_size(vector_bytes)));

/// Numbers of a register, and channels of a block of a tensor.
inline constexpr int lanes = vector_block;

/// A register's numbers in double. No function returns one: where it takes two registers, its ABI
/// differs between processors, which compilers warn of.
using Wide = double __attribute__((vector_size(lanes * sizeof(double)), aligned(alignof(double))));

/// Registers of the processor.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int registers = 32;
#else
inline constexpr int registers = 16;
#endif

/// The same where memory is not aligned.
using LooseLanes [[gnu::aligned(alignof(real)), gnu::may_alias]] = Lanes;

[[gnu::always_inline]] inline Lanes load(const real* from) {
  return *reinterpret_cast<const LooseLanes*>(from);
}
[[gnu::always_inline]] inline void store(real* to, const Lanes& value) {
  *reinterpret_cast<LooseLanes*>(to) = value;
}

/// The numbers of a register as floats, their bits, and the bits of as many bf16. No function
/// returns one: where real is double, no register may be as short.
using Singles = float __attribute__((vector_size(lanes * sizeof(float))));
using Words = std::uint32_t __attribute__((vector_size(lanes * sizeof(std::uint32_t))));
using Halves = std::uint16_t
    __attribute__((vector_size(lanes * sizeof(Bfloat16)), aligned(alignof(Bfloat16)), may_alias));

[[gnu::always_inline]] inline void put_singles(Lanes& to, const Words& bits) {
  to = __builtin_convertvector(std::bit_cast<Singles>(bits), Lanes);
}
/// The bits of bf16, rounded as to_bfloat16() does.
[[gnu::always_inline]] inline void put_halves(Words& to, const Lanes& value) {
  const Words bits = std::bit_cast<Words>(__builtin_convertvector(value, Singles));
  const Words rounded = bits + 0x7fff + ((bits >> 16) & 1);
  to = ((bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : rounded) >> 16;
}

// gcc 12 makes several instructions of the conversions of 16 numbers that the processor has.
// Masked, since it warns of what unmasked ones leave out.
[[gnu::always_inline]] inline void widen(Words& to, const Bfloat16* from) {
#if defined(CAROUSEL_LANES_512)
  to = std::bit_cast<Words>(_mm512_maskz_cvtepu16_epi32(
      0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
#else
  to = __builtin_convertvector(*reinterpret_cast<const Halves*>(from), Words);
#endif
}
[[gnu::always_inline]] inline void narrow(Bfloat16* to, const Words& bits) {
#if defined(CAROUSEL_LANES_512)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm512_maskz_cvtepi32_epi16(0xffff, reinterpret_cast<__m512i>(bits)));
#else
  *reinterpret_cast<Halves*>(to) = __builtin_convertvector(bits, Halves);
#endif
}

[[gnu::always_inline]] inline Lanes load(const Bfloat16* from) {
  Words bits;
  widen(bits, from);
  Lanes value;
  put_singles(value, bits << 16);
  return value;
}
[[gnu::always_inline]] inline void store(Bfloat16* to, const Lanes& value) {
  Words bits;
  put_halves(bits, value);
  narrow(to, bits);
}

/// A value as it would be read again, had it been stored.
template <class Stored>
[[gnu::always_inline]] inline Lanes as_stored(Lanes value) {
  if constexpr (std::is_same_v<Stored, Bfloat16>) {
    Words bits;
    put_halves(bits, value);
    put_singles(value, bits << 16);
  }
  return value;
}

/// Two bf16 for each lane, side by side in memory.
using LoosePairs [[gnu::aligned(alignof(Bfloat16)), gnu::may_alias]] = Words;

[[gnu::always_inline]] inline void put_pairs(Bfloat16* to, const Words& first,
                                             const Words& second) {
  *reinterpret_cast<LoosePairs*>(to) = first | second << 16;
}

/// from[0], from[stride], ...
template <class Stored>
[[gnu::always_inline]] inline Lanes gathered(const Stored* from, std::int64_t stride) {
  Lanes value = {};
  for (int l = 0; l < lanes; ++l) value[l] = full(from[l * stride]);
  return value;
}

/// A product that is rounded before it is added to something. Several kernels make the same
/// numbers, and without this barrier a compiler decides by the code around which products it fuses
/// with a sum.
template <class T>
[[gnu::always_inline]] inline T rounded(T product) {
#if defined(__x86_64__)
  asm("" : "+v"(product));
#elif defined(__aarch64__)
  asm("" : "+w"(product));
#else
  asm("" : "+m"(product));
#endif
  return product;
}

/// scale x + shift
[[gnu::always_inline]] inline Lanes affine(const Lanes& x, const Lanes& scale, const Lanes& shift) {
  return rounded<Lanes>(x * scale) + shift;
}

/// Zero where x is negative; NaN passes, as in PyTorch.
[[gnu::always_inline]] inline Lanes rectified(const Lanes& x) {
  return x < Lanes{} ? Lanes{} : x;
}

/// What is 0 in one branch and `d` in the other; both are read, so that nothing branches.
[[gnu::always_inline]] inline Lanes where_positive(const Lanes& x, const Lanes& d) {
  return x <= Lanes{} ? Lanes{} : d;
}

}  // namespace carousel::blocked
