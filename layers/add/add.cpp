// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/add/add.hpp"

#include "core/base/check.hpp"
#include "layers/add_numbers.hpp"

namespace carousel {

Add::Add(const LayerSpec& spec) : type_(spec.output_format.type) {
  CAROUSEL_CHECK(spec.in_place && spec.inputs.size() == 2 && spec.input() == spec.output &&
                     spec.inputs[1].shape == spec.output,
                 "addition {} needs two inputs of one shape and works in place", spec.name);
}

void Add::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::add_forward";
  with_stored(type_, [&]<class Stored>() {
    hand_on<Stored>(exec, label, arguments.second, arguments.output, true);
  });
}

void Add::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::add_backward";
  if (arguments.d_second.data == nullptr) return;
  with_stored(type_, [&]<class Stored>() {
    hand_on<Stored>(exec, label, arguments.d_output, arguments.d_second, arguments.adds_second);
  });
}

}  // namespace carousel
