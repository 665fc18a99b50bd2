// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/relu.hpp"

#include "core/base/range.hpp"

namespace carousel {

// Both comparisons let NaN pass, as PyTorch does, so that divergence reaches the loss.

void Relu::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::relu_forward";
  const real* x = arguments.input.data;
  real* y = arguments.output.data;
  Kokkos::parallel_for(
      label, range(exec, arguments.input.size()), KOKKOS_LAMBDA(std::int64_t i) {
        const real value = x[i];
        y[i] = value < 0 ? real(0) : value;
      });
}

void Relu::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::relu_backward";
  if (arguments.d_input.data == nullptr) return;
  const real* y = arguments.output.data;
  const real* d_y = arguments.d_output.data;
  real* d_x = arguments.d_input.data;
  Kokkos::parallel_for(
      label, range(exec, arguments.output.size()), KOKKOS_LAMBDA(std::int64_t i) {
        const real d = d_y[i];  // read in any case, so that nothing branches on the data
        d_x[i] = y[i] <= 0 ? real(0) : d;
      });
}

}  // namespace carousel
