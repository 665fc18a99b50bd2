// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/flatten/flatten.hpp"

#include "layers/add_numbers.hpp"

namespace carousel {

void Flatten::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::flatten_forward";
  if (arguments.output.data == arguments.input.data) return;
  hand_on<real>(exec, label, arguments.input, arguments.output, false);
}

void Flatten::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::flatten_backward";
  const Tensor& d_input = arguments.d_input;
  if (d_input.data == nullptr || d_input.data == arguments.d_output.data) return;
  hand_on<real>(exec, label, arguments.d_output, d_input, arguments.adds_input);
}

}  // namespace carousel
