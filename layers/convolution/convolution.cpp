// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/convolution/convolution.hpp"

#include "core/base/check.hpp"
#include "layers/convolution/op.hpp"

namespace carousel {
namespace {

WindowProducts products_of(const LayerSpec& spec) {
  WindowProducts products = {.wide = spec.input(), .small = spec.output, .window = {}};
  if (spec.is("linear")) return products;
  products.window = spec.as<op::Convolution>().window;
  products.groups = spec.as<op::Convolution>().groups;
  return products;
}

}  // namespace

Convolution::Convolution(const LayerSpec& spec, int before)
    : products_(products_of(spec)),
      weights_(std::int64_t{spec.output.channels} * products_.taps()),
      before_(before),
      has_bias_(spec.parameters.size() == 2),
      learns_(!spec.is_frozen()) {
  CAROUSEL_CHECK(spec.parameter_size() == weights_ + (has_bias_ ? spec.output.channels : 0),
                 "convolution {} has {} parameters", spec.name, spec.parameter_size());
}

void Convolution::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::convolution_forward";
  look_through(exec, label, products_, arguments.input, arguments.parameters,
               has_bias_ ? arguments.parameters + weights_ : nullptr, arguments.output.data,
               before_, false);
}

void Convolution::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string weight_label = "carousel::layers::convolution_backward_weight";
  static const std::string bias_label = "carousel::layers::convolution_backward_bias";
  static const std::string input_label = "carousel::layers::convolution_backward_input";
  if (learns_) {
    correlate(exec, weight_label, products_, arguments.input, arguments.d_output, before_,
              arguments.d_parameters);
    if (has_bias_)
      sum_channels(exec, bias_label, arguments.d_output, arguments.d_parameters + weights_);
  }
  if (arguments.d_input.data == nullptr) return;
  CAROUSEL_CHECK(before_ == 0, "a convolution of {} before other pixels",
                 to_string(products_.wide));
  send_back(exec, input_label, products_, arguments.d_output, arguments.parameters, nullptr,
            arguments.d_input.data, arguments.adds_input);
}

}  // namespace carousel
