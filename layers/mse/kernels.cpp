// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/error_loss.hpp"

namespace carousel::kernels {
namespace {

struct Square {
  [[nodiscard]] KOKKOS_FUNCTION double value(real output, real target) const {
    const real error = output - target;
    return error * error;
  }
  [[nodiscard]] KOKKOS_FUNCTION real gradient(real output, real target) const {
    return 2 * (output - target);
  }
};

}  // namespace

std::unique_ptr<Layer> mse(const LayerSpec& spec, int /*samples*/, const Engine& /*engine*/) {
  return std::make_unique<ErrorLoss<Square>>(spec);
}

}  // namespace carousel::kernels
