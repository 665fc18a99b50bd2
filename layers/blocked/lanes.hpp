// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The numbers of one vector register of the host as one value. What is computed with them is
// written elsewhere.

#include <cstdint>

#include "core/base/vectors.hpp"

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

/// from[0], from[stride], ...
[[gnu::always_inline]] inline Lanes gathered(const real* from, std::int64_t stride) {
  Lanes value = {};
  for (int l = 0; l < lanes; ++l) value[l] = from[l * stride];
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
