// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/error_loss.hpp"

namespace carousel::kernels {
namespace {

struct Square {
  [[nodiscard]] KOKKOS_FUNCTION double value(real error) const { return error * error; }
  [[nodiscard]] KOKKOS_FUNCTION real gradient(real error) const { return 2 * error; }
};

}  // namespace

std::unique_ptr<Layer> mse(const LayerSpec& spec, int /*samples*/, const Engine& /*engine*/) {
  return std::make_unique<ErrorLoss<Square>>(spec);
}

}  // namespace carousel::kernels
