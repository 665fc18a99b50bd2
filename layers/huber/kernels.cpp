// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/error_loss.hpp"
#include "layers/huber/op.hpp"

namespace carousel::kernels {
namespace {

struct Huber {
  real delta = 1;

  [[nodiscard]] KOKKOS_FUNCTION double value(real output, real target) const {
    const real error = output - target;
    const real size = Kokkos::abs(error);
    return size < delta ? error * error / 2 : delta * (size - delta / 2);
  }
  [[nodiscard]] KOKKOS_FUNCTION real gradient(real output, real target) const {
    const real error = output - target;
    return error < -delta ? -delta : error > delta ? delta : error;
  }
};

}  // namespace

std::unique_ptr<Layer> huber(const LayerSpec& spec, int /*samples*/, const Engine& /*engine*/) {
  const auto delta = static_cast<real>(spec.as<op::Huber>().delta);
  return std::make_unique<ErrorLoss<Huber>>(spec, Huber{delta});
}

}  // namespace carousel::kernels
