// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/by_number.hpp"
#include "layers/exponential.hpp"

namespace carousel::kernels {
namespace {

struct Gelu {
  [[nodiscard]] KOKKOS_FUNCTION real value(real x) const {
    return x * detail::normal_at(x).distribution;
  }
  [[nodiscard]] KOKKOS_FUNCTION real gradient(real x, real d) const {
    const detail::Normal at = detail::normal_at(x);
    return d * (at.distribution + x * at.density);
  }
};

}  // namespace

std::unique_ptr<Layer> gelu(const LayerSpec& spec, int /*samples*/, const Engine& /*engine*/) {
  return std::make_unique<ByNumber<Gelu>>(spec);
}

}  // namespace carousel::kernels
