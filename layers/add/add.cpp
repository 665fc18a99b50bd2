// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/add/add.hpp"

#include "core/base/check.hpp"
#include "layers/add_numbers.hpp"

namespace carousel {

Add::Add(const LayerSpec& spec) : type_(spec.output_format.type) {
  CAROUSEL_CHECK(
      spec.inputs.size() == 2 && spec.input() == spec.output && spec.inputs[1].shape == spec.output,
      "addition {} needs two inputs of one shape", spec.name);
}

void Add::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::add_forward";
  with_stored(type_, [&]<class Stored>() {
    if (arguments.output.data != arguments.input.data)
      hand_on<Stored>(exec, label, arguments.input, arguments.output, false);
    hand_on<Stored>(exec, label, arguments.second, arguments.output, true);
  });
}

void Add::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::add_backward";
  const Tensor& d_input = arguments.d_input;
  const Tensor& d_second = arguments.d_second;
  with_stored(type_, [&]<class Stored>() {
    if (d_input.data != nullptr && d_input.data != arguments.d_output.data)
      hand_on<Stored>(exec, label, arguments.d_output, d_input, arguments.adds_input);
    if (d_second.data != nullptr)
      hand_on<Stored>(exec, label, arguments.d_output, d_second, arguments.adds_second);
  });
}

}  // namespace carousel
