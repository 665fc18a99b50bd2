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

/// Calls run.operator()<Stored>() for the type that a tensor is stored in.
template <class Run>
void with_stored(DataType type, const Run& run) {
  if (type == DataType::full)
    run.template operator()<real>();
  else
    run.template operator()<Bfloat16>();
}

}  // namespace carousel
