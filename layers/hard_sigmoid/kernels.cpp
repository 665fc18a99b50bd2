// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/by_number.hpp"

namespace carousel::kernels {
namespace {

struct HardSigmoid {
  static constexpr real reach = 3;

  /// Not by minima, which would lose a NaN.
  [[nodiscard]] KOKKOS_FUNCTION real value(real x) const {
    const real cut = x > reach ? reach : x;
    return cut < -reach ? real(0) : (cut + reach) / 6;
  }
  [[nodiscard]] KOKKOS_FUNCTION real gradient(real x, real d) const {
    return x <= -reach || x >= reach ? real(0) : d / 6;
  }
};

}  // namespace

std::unique_ptr<Layer> hard_sigmoid(const LayerSpec& spec, int /*samples*/,
                                    const Engine& /*engine*/) {
  return std::make_unique<ByNumber<HardSigmoid>>(spec);
}

}  // namespace carousel::kernels
