// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/by_number.hpp"

namespace carousel::kernels {
namespace {

struct HardSwish {
  static constexpr real reach = 3;

  [[nodiscard]] KOKKOS_FUNCTION real value(real x) const {
    const real cut = x > reach ? reach : x;
    const real share = (cut + reach) / 6;
    return x < -reach ? real(0) : x * share;
  }
  [[nodiscard]] KOKKOS_FUNCTION real gradient(real x, real d) const {
    const real within = d * (x / 3 + real(0.5));
    const real above = x > reach ? d : within;
    return x < -reach ? real(0) : above;
  }
};

}  // namespace

std::unique_ptr<Layer> hard_swish(const LayerSpec& spec, int /*samples*/,
                                  const Engine& /*engine*/) {
  return std::make_unique<ByNumber<HardSwish>>(spec);
}

}  // namespace carousel::kernels
