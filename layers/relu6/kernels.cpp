// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/by_number.hpp"

namespace carousel::kernels {
namespace {

struct Relu6 {
  static constexpr real top = 6;

  /// Not by a minimum, which would lose a NaN.
  [[nodiscard]] KOKKOS_FUNCTION real value(real x) const {
    const real cut = x > top ? top : x;
    return cut < 0 ? real(0) : cut;
  }
  [[nodiscard]] KOKKOS_FUNCTION real gradient(real x, real d) const {
    return x <= 0 || x >= top ? real(0) : d;
  }
};

}  // namespace

std::unique_ptr<Layer> relu6(const LayerSpec& spec, int /*samples*/, const Engine& /*engine*/) {
  return std::make_unique<ByNumber<Relu6>>(spec);
}

}  // namespace carousel::kernels
