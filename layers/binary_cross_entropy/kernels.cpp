// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/error_loss.hpp"

namespace carousel::kernels {
namespace {

struct BinaryCrossEntropy {
  [[nodiscard]] KOKKOS_FUNCTION double value(real output, real target) const {
    const double x = output;
    return Kokkos::fmax(x, 0.0) - x * target + Kokkos::log1p(Kokkos::exp(-Kokkos::abs(x)));
  }
  [[nodiscard]] KOKKOS_FUNCTION real gradient(real output, real target) const {
    // By a power that is never above 1.
    const real power = Kokkos::exp(-Kokkos::abs(output));
    const real probability = (output > 0 ? real(1) : power) / (1 + power);
    return probability - target;
  }
};

}  // namespace

std::unique_ptr<Layer> binary_cross_entropy(const LayerSpec& spec, int /*samples*/,
                                            const Engine& /*engine*/) {
  return std::make_unique<ErrorLoss<BinaryCrossEntropy>>(spec);
}

}  // namespace carousel::kernels
