// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/add.hpp"

#include "core/base/check.hpp"
#include "core/base/range.hpp"

namespace carousel {

Add::Add(const LayerSpec& spec) {
  CAROUSEL_CHECK(spec.in_place && spec.inputs.size() == 2 && spec.input() == spec.output &&
                     spec.inputs[1].shape == spec.output,
                 "addition {} needs two inputs of one shape and works in place", spec.name);
}

void Add::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::add_forward";
  const real* second = arguments.second.data;
  real* sum = arguments.output.data;
  Kokkos::parallel_for(
      label, range(exec, arguments.output.size()),
      KOKKOS_LAMBDA(std::int64_t i) { sum[i] += second[i]; });
}

void Add::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::add_backward";
  const real* d_sum = arguments.d_output.data;
  real* d_second = arguments.d_second.data;
  if (d_second == nullptr) return;
  const bool adds = arguments.adds_second;
  Kokkos::parallel_for(
      label, range(exec, arguments.output.size()),
      KOKKOS_LAMBDA(std::int64_t i) { d_second[i] = adds ? d_second[i] + d_sum[i] : d_sum[i]; });
}

}  // namespace carousel
