// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/by_number.hpp"
#include "layers/exponential.hpp"

namespace carousel::kernels {
namespace {

struct GeluTanh {
  /// (1 + tanh u) / 2 is the logistic function of 2 u.
  static constexpr double factor = 1.59576912160573071176;  // 2 sqrt(2 / pi)
  static constexpr double cubic = 0.044715;

  static constexpr real far = 22;  // from where on it is 0 or 1 in any precision

  [[nodiscard]] static KOKKOS_FUNCTION real near(real x) {
    const real cut = x > far ? far : x;
    return cut < -far ? -far : cut;
  }
  [[nodiscard]] static KOKKOS_FUNCTION detail::Logistic share_at(real z) {
    return detail::logistic_at(real(factor) * z * (1 + real(cubic) * z * z));
  }
  [[nodiscard]] KOKKOS_FUNCTION real value(real x) const { return x * share_at(near(x)).value; }
  [[nodiscard]] KOKKOS_FUNCTION real gradient(real x, real d) const {
    const real z = near(x);
    const detail::Logistic share = share_at(z);
    const real slope = real(factor) * (1 + real(3 * cubic) * z * z);
    return d * (share.value + x * (share.value * share.rest) * slope);
  }
};

}  // namespace

std::unique_ptr<Layer> gelu_tanh(const LayerSpec& spec, int /*samples*/, const Engine& /*engine*/) {
  return std::make_unique<ByNumber<GeluTanh>>(spec);
}

}  // namespace carousel::kernels
