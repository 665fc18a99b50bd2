// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/by_number.hpp"
#include "layers/elu/op.hpp"
#include "layers/exponential.hpp"

namespace carousel::kernels {
namespace {

struct Elu {
  real alpha;

  [[nodiscard]] KOKKOS_FUNCTION real value(real x) const {
    const real below = alpha * detail::exponential_less_one(x > 0 ? real(0) : x);
    return x > 0 ? x : below;
  }
  [[nodiscard]] KOKKOS_FUNCTION real gradient(real x, real d) const {
    const real below = d * alpha * detail::exponential(x > 0 ? real(0) : x);
    return x <= 0 ? below : d;
  }
};

}  // namespace

std::unique_ptr<Layer> elu(const LayerSpec& spec, int /*samples*/, const Engine& /*engine*/) {
  const auto alpha = static_cast<real>(spec.as<op::Elu>().alpha);
  return std::make_unique<ByNumber<Elu>>(spec, Elu{alpha});
}

}  // namespace carousel::kernels
