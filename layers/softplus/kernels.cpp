// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/by_number.hpp"
#include "layers/exponential.hpp"
#include "layers/softplus/op.hpp"

namespace carousel::kernels {
namespace {

struct Softplus {
  real beta;
  real threshold;

  /// max(z, 0) + log(1 + exp(-|z|)) with z = beta x, in which nothing is too large.
  [[nodiscard]] KOKKOS_FUNCTION real value(real x) const {
    const real z = beta * x;
    const real bend = Kokkos::log1p(detail::exponential(z > 0 ? -z : z));
    return z > threshold ? x : ((z < 0 ? real(0) : z) + bend) / beta;
  }
  [[nodiscard]] KOKKOS_FUNCTION real gradient(real x, real d) const {
    const real z = beta * x;
    return z > threshold ? d : d * detail::logistic_at(z).value;
  }
};

}  // namespace

std::unique_ptr<Layer> softplus(const LayerSpec& spec, int /*samples*/, const Engine& /*engine*/) {
  const auto& softplus = spec.as<op::Softplus>();
  return std::make_unique<ByNumber<Softplus>>(
      spec, Softplus{static_cast<real>(softplus.beta), static_cast<real>(softplus.threshold)});
}

}  // namespace carousel::kernels
