// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/gelu.hpp"

#include "core/base/range.hpp"
#include "layers/exponential.hpp"

namespace carousel {
namespace {

/// Neighbouring numbers that one index stands for: on hosts they fill vector registers.
constexpr int lanes = runs_on_host ? 64 : 1;

/// Calls visit(i) for 0 <= i < size.
template <class Visit>
void for_each_number(const ExecutionSpace& exec, const std::string& label, std::int64_t size,
                     const Visit& visit) {
  Kokkos::parallel_for(
      label, range(exec, (size + lanes - 1) / lanes), KOKKOS_LAMBDA(std::int64_t chunk) {
        const std::int64_t first = chunk * lanes;
        if (first + lanes <= size) {
          for (int l = 0; l < lanes; ++l) visit(first + l);
        } else {
          for (std::int64_t i = first; i < size; ++i) visit(i);
        }
      });
}

}  // namespace

void Gelu::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::gelu_forward";
  const real* x = arguments.input.data;
  real* y = arguments.output.data;
  for_each_number(
      exec, label, arguments.input.size(),
      KOKKOS_LAMBDA(std::int64_t i) { y[i] = x[i] * detail::normal_at(x[i]).distribution; });
}

void Gelu::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::gelu_backward";
  if (arguments.d_input.data == nullptr) return;
  const real* x = arguments.input.data;
  const real* d_y = arguments.d_output.data;
  real* d_x = arguments.d_input.data;
  const bool adds = arguments.adds_input;
  for_each_number(
      exec, label, arguments.input.size(), KOKKOS_LAMBDA(std::int64_t i) {
        const detail::Normal at = detail::normal_at(x[i]);
        const real gradient = d_y[i] * (at.distribution + x[i] * at.density);
        d_x[i] = adds ? d_x[i] + gradient : gradient;
      });
}

}  // namespace carousel
