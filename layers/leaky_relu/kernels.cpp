// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/by_number.hpp"
#include "layers/leaky_relu/op.hpp"

namespace carousel::kernels {
namespace {

struct LeakyRelu {
  real slope;

  /// One product either way, so that nothing branches on the data.
  [[nodiscard]] KOKKOS_FUNCTION real factor(real x) const { return x > 0 ? real(1) : slope; }
  [[nodiscard]] KOKKOS_FUNCTION real value(real x) const { return x * factor(x); }
  [[nodiscard]] KOKKOS_FUNCTION real gradient(real x, real d) const { return d * factor(x); }
};

}  // namespace

std::unique_ptr<Layer> leaky_relu(const LayerSpec& spec, int /*samples*/,
                                  const Engine& /*engine*/) {
  const auto slope = static_cast<real>(spec.as<op::LeakyRelu>().negative_slope);
  return std::make_unique<ByNumber<LeakyRelu>>(spec, LeakyRelu{slope});
}

}  // namespace carousel::kernels
