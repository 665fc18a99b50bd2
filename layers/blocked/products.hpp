// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the sums of the blocked kernels add products: of full numbers one by one, of bf16 in pairs,
// as the processor's instruction for that has it, or with the same bits without one.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/base/bfloat16.hpp"
#include "core/model/kernel_choice.hpp"
#include "layers/blocked/lanes.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace carousel::blocked {

/// Each kind has the numbers that it reads, of which so many lie `together`, and what it makes of
/// them: of a factor for every lane and of one that all lanes share.
struct FullProducts {
  using Factor = Lanes;
  using Shared = real;
  static constexpr int together = 1;
  static constexpr int apart = 0;  // pairs whose first and second numbers are summed apart

  /// Of numbers in bf16, too.
  template <class From>
  [[gnu::always_inline]] static Factor factor(const From* from) {
    return load(from);
  }
  [[gnu::always_inline]] static Shared shared(const real* from) { return *from; }
  [[gnu::always_inline]] static void add(Lanes& sum, const Shared& shared, const Factor& factor) {
    sum += shared * factor;
  }
};

/// Pairs of bf16 for each lane. The product of the second ones is added first, and each sum is
/// rounded by itself; the order is that of Intel's VDPBF16PS (Software Developer's Manual, volume
/// 2C), which treats subnormal numbers as zero: so do these in a ZeroSubnormals.
struct PairProducts {
  struct Factor {
    Lanes first;
    Lanes second;
  };
  using Shared = Factor;
  static constexpr int together = 2;
  static constexpr int apart = 0;

  [[gnu::always_inline]] static Factor factor(const Bfloat16* from) {
    // By value: a reference to Words would promise their alignment.
    const Words pairs = *reinterpret_cast<const LoosePairs*>(from);
    return of(pairs);
  }
  [[gnu::always_inline]] static Shared shared(const Bfloat16* from) {
    std::uint32_t pair = 0;
    std::memcpy(&pair, from, sizeof(pair));
    return of(Words{} + pair);
  }
  [[gnu::always_inline]] static void add(Lanes& sum, const Shared& shared, const Factor& factor) {
    sum += shared.second * factor.second;
    sum += shared.first * factor.first;
  }

 private:
  [[gnu::always_inline]] static Factor of(const Words& pairs) {
    Factor numbers;
    put_singles(numbers.first, pairs << 16);
    put_singles(numbers.second, pairs & 0xffff0000);
    return numbers;
  }
};

/// The same by the instruction, for sources that are compiled for it.
struct DotProducts;
#if defined(__AVX512BF16__) && defined(CAROUSEL_LANES_512)
struct DotProducts {
  using Factor = __m512bh;
  using Shared = __m512bh;
  static constexpr int together = 2;
  static constexpr int apart = 0;

  [[gnu::always_inline]] static Factor factor(const Bfloat16* from) {
    return reinterpret_cast<Factor>(_mm512_loadu_si512(from));
  }
  [[gnu::always_inline]] static Shared shared(const Bfloat16* from) {
    int pair = 0;
    std::memcpy(&pair, from, sizeof(pair));
    return reinterpret_cast<Shared>(_mm512_set1_epi32(pair));
  }
  [[gnu::always_inline]] static void add(Lanes& sum, const Shared& shared, const Factor& factor) {
    sum = _mm512_dpbf16_ps(sum, shared, factor);
  }
};
#endif

/// Pairs whose first and second numbers make sums of their own, over `apart` of them at most, which
/// then join the sum: the order of Intel's TDPBF16PS (Software Developer's Manual, volume 2B),
/// which treats subnormal numbers as zero.
struct TileProducts {
  using Factor = PairProducts::Factor;
  using Shared = PairProducts::Shared;
  static constexpr int together = 2;
  static constexpr int apart = 16;

  [[gnu::always_inline]] static Factor factor(const Bfloat16* from) {
    return PairProducts::factor(from);
  }
  [[gnu::always_inline]] static Shared shared(const Bfloat16* from) {
    return PairProducts::shared(from);
  }
  [[gnu::always_inline]] static void add(Factor& sums, const Shared& shared, const Factor& factor) {
    sums.first += shared.first * factor.first;
    sums.second += shared.second * factor.second;
  }
};

/// The same by the instruction, which multiplies matrices: see matrix_sums.hpp.
struct MatrixProducts;

/// Whether the processor has the instruction for pairs.
[[nodiscard]] inline bool has_dot_products() {
#if defined(CAROUSEL_DOT_PRODUCTS)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

/// Whether it has that for matrices, and the system lets this process use it.
[[nodiscard]] bool has_matrix_products();

/// What a kind of products reads.
template <class Products>
using StoredBy = std::conditional_t<std::is_same_v<Products, FullProducts>, real, Bfloat16>;

/// Calls function(std::type_identity<Products>()) with pairs, by the instruction where there is
/// one.
template <class Function>
void with_pair_products(const Function& function) {
#if defined(CAROUSEL_DOT_PRODUCTS)
  if (has_dot_products()) return function(std::type_identity<DotProducts>());
#endif
  function(std::type_identity<PairProducts>());
}

/// Likewise with products of what is stored so, those of bf16 of the kind that is asked for: by an
/// instruction where there is one, with the same bits.
template <class Stored, class Function>
void with_products([[maybe_unused]] ProductOrder kind, const Function& function) {
  if constexpr (std::is_same_v<Stored, real>) {
    function(std::type_identity<FullProducts>());
  } else if (kind == ProductOrder::tiles) {
#if defined(CAROUSEL_MATRIX_PRODUCTS)
    if (has_matrix_products()) return function(std::type_identity<MatrixProducts>());
#endif
    function(std::type_identity<TileProducts>());
  } else {
    with_pair_products(function);
  }
}

/// The full numbers that take as much memory, or a part of one more.
template <class Stored>
[[nodiscard]] constexpr std::int64_t in_reals(std::int64_t numbers) {
  constexpr std::int64_t whole = sizeof(real);
  return (numbers * std::int64_t{sizeof(Stored)} + whole - 1) / whole;
}

/// While it lives, the thread computes with zero instead of subnormal numbers, if that is wanted.
class ZeroSubnormals {
 public:
  explicit ZeroSubnormals(bool wanted) : before_(read()) {
    if (wanted) write(before_ | bits);
  }
  ZeroSubnormals(const ZeroSubnormals&) = delete;
  ZeroSubnormals& operator=(const ZeroSubnormals&) = delete;
  ~ZeroSubnormals() { write(before_); }

 private:
#if defined(__x86_64__)
  using Register = unsigned;
  static constexpr Register bits = 0x8040;  // of results, and of what is read
  static Register read() {
    return _mm_getcsr();
  }
  static void write(Register value) {
    _mm_setcsr(value);
  }
#elif defined(__aarch64__)
  using Register = std::uint64_t;
  static constexpr Register bits = std::uint64_t{1} << 24;
  static Register read() {
    Register value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void write(Register value) {
    asm volatile("msr fpcr, %0" : : "r"(value));
  }
#else
  using Register = unsigned;
  static constexpr Register bits = 0;
  static Register read() {
    return 0;
  }
  static void write(Register) {}
#endif

  Register before_;
};

}  // namespace carousel::blocked
