// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/flatten/flatten.hpp"

#include "core/base/range.hpp"

namespace carousel {
namespace {

void copy(const ExecutionSpace& exec, const std::string& label, std::int64_t size, const real* from,
          real* to) {
  if (from == to) return;
  Kokkos::parallel_for(
      label, range(exec, size), KOKKOS_LAMBDA(std::int64_t i) { to[i] = from[i]; });
}

}  // namespace

void Flatten::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::flatten_forward";
  copy(exec, label, arguments.input.size(), arguments.input.data, arguments.output.data);
}

void Flatten::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::flatten_backward";
  if (arguments.d_input.data == nullptr) return;
  copy(exec, label, arguments.d_output.size(), arguments.d_output.data, arguments.d_input.data);
}

}  // namespace carousel
