// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A tensor handed on to where others may have left something: what additions are made of.

#include "core/base/range.hpp"
#include "core/engine/layer.hpp"
#include "layers/stored.hpp"

namespace carousel {

namespace detail {

template <int Width, class Stored>
void hand_on_packs(const ExecutionSpace& exec, const std::string& label, const Stored* from,
                   Stored* to, std::int64_t packs, bool adds) {
  Kokkos::parallel_for(
      label, range(exec, packs), KOKKOS_LAMBDA(std::int64_t k) {
        auto numbers = read_pack<Width>(from + k * Width);
        if (adds) {
          const auto others = read_pack<Width>(to + k * Width);
          for (int l = 0; l < Width; ++l)
            put(numbers.at[l], full(others.at[l]) + full(numbers.at[l]));
        }
        write_pack(to + k * Width, numbers);
      });
}

}  // namespace detail

/// to = from, or to += from, number by number in the type that both are stored in.
template <class Stored>
void hand_on(const ExecutionSpace& exec, const std::string& label, const ConstTensor& from,
             const Tensor& to, bool adds) {
  constexpr int width = runs_on_host ? 1 : 8;  // compilers make vectors of what hosts do
  using Most = Pack<Stored, width>;
  const auto* x = reinterpret_cast<const Stored*>(from.data);
  auto* sum = reinterpret_cast<Stored*>(to.data);
  const auto places = reinterpret_cast<std::uintptr_t>(x) | reinterpret_cast<std::uintptr_t>(sum);
  if (from.size() % width == 0 && places % alignof(Most) == 0)
    detail::hand_on_packs<width>(exec, label, x, sum, from.size() / width, adds);
  else
    detail::hand_on_packs<1>(exec, label, x, sum, from.size(), adds);
}

}  // namespace carousel
