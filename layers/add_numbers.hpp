// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A tensor handed on to where others may have left something: what additions are made of.

#include "core/base/range.hpp"
#include "core/engine/layer.hpp"
#include "layers/stored.hpp"

namespace carousel {

/// to = from, or to += from, number by number in the type that both are stored in.
template <class Stored>
void hand_on(const ExecutionSpace& exec, const std::string& label, const ConstTensor& from,
             const Tensor& to, bool adds) {
  const auto* x = reinterpret_cast<const Stored*>(from.data);
  auto* sum = reinterpret_cast<Stored*>(to.data);
  Kokkos::parallel_for(
      label, range(exec, from.size()), KOKKOS_LAMBDA(std::int64_t i) {
        if (adds)
          put(sum[i], full(sum[i]) + full(x[i]));
        else
          sum[i] = x[i];
      });
}

}  // namespace carousel
