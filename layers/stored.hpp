// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How kernels read and write numbers in the type that a tensor stores them in.

#include "core/base/bfloat16.hpp"
#include "core/base/view.hpp"
#include "core/model/tensor_format.hpp"

namespace carousel {

[[nodiscard]] KOKKOS_INLINE_FUNCTION real full(real value) {
  return value;
}
[[nodiscard]] KOKKOS_INLINE_FUNCTION real full(Bfloat16 value) {
  return static_cast<real>(to_float(value));
}
KOKKOS_INLINE_FUNCTION void put(real& to, real value) {
  to = value;
}
KOKKOS_INLINE_FUNCTION void put(Bfloat16& to, real value) {
  to = to_bfloat16(static_cast<float>(value));
}

/// Neighbours that a thread reads or writes at once, from where a multiple of so many begins.
template <class Stored, int Width>
struct alignas(Width * sizeof(Stored) < 16 ? Width * sizeof(Stored) : 16) Pack {
  Stored at[Width];  // NOLINT(modernize-avoid-c-arrays): kernels keep it in registers
};
template <int Width, class Stored>
[[nodiscard]] KOKKOS_INLINE_FUNCTION Pack<Stored, Width> read_pack(const Stored* from) {
  return *reinterpret_cast<const Pack<Stored, Width>*>(from);
}
template <int Width, class Stored>
KOKKOS_INLINE_FUNCTION void write_pack(Stored* to, const Pack<Stored, Width>& pack) {
  *reinterpret_cast<Pack<Stored, Width>*>(to) = pack;
}

/// Neighbours that begin anywhere.
template <int Width>
[[nodiscard]] KOKKOS_INLINE_FUNCTION Pack<real, Width> read_numbers(const real* from) {
  Pack<real, Width> numbers;
  for (int l = 0; l < Width; ++l) numbers.at[l] = from[l];
  return numbers;
}

/// Calls run.operator()<Stored>() for the type that a tensor is stored in.
template <class Run>
void with_stored(DataType type, const Run& run) {
  if (type == DataType::full)
    run.template operator()<real>();
  else
    run.template operator()<Bfloat16>();
}

}  // namespace carousel
