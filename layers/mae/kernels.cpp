// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/error_loss.hpp"

namespace carousel::kernels {
namespace {

struct Distance {
  [[nodiscard]] KOKKOS_FUNCTION double value(real output, real target) const {
    return Kokkos::abs(output - target);
  }
  [[nodiscard]] KOKKOS_FUNCTION real gradient(real output, real target) const {
    const real error = output - target;
    return error > 0 ? real(1) : error < 0 ? real(-1) : real(0);
  }
};

}  // namespace

std::unique_ptr<Layer> mae(const LayerSpec& spec, int /*samples*/, const Engine& /*engine*/) {
  return std::make_unique<ErrorLoss<Distance>>(spec);
}

}  // namespace carousel::kernels
