// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/by_number.hpp"
#include "layers/exponential.hpp"

namespace carousel::kernels {
namespace {

struct Silu {
  [[nodiscard]] KOKKOS_FUNCTION real value(real x) const {
    return x * detail::logistic_at(x).value;
  }
  [[nodiscard]] KOKKOS_FUNCTION real gradient(real x, real d) const {
    const detail::Logistic at = detail::logistic_at(x);
    return d * at.value * (1 + x * at.rest);
  }
};

}  // namespace

std::unique_ptr<Layer> silu(const LayerSpec& spec, int /*samples*/, const Engine& /*engine*/) {
  return std::make_unique<ByNumber<Silu>>(spec);
}

}  // namespace carousel::kernels
