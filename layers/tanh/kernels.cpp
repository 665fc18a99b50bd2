// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/by_number.hpp"
#include "layers/exponential.hpp"

namespace carousel::kernels {
namespace {

struct Tanh {
  [[nodiscard]] KOKKOS_FUNCTION real value(real x) const {
    const real less = detail::exponential_less_one(x < 0 ? 2 * x : -2 * x);
    return Kokkos::copysign(less / (2 + less), x);
  }
  [[nodiscard]] KOKKOS_FUNCTION real gradient(real x, real d) const {
    const real tail = detail::exponential(x < 0 ? 2 * x : -2 * x);
    return d * 4 * tail / ((1 + tail) * (1 + tail));
  }
};

}  // namespace

std::unique_ptr<Layer> tanh(const LayerSpec& spec, int /*samples*/, const Engine& /*engine*/) {
  return std::make_unique<ByNumber<Tanh>>(spec);
}

}  // namespace carousel::kernels
