// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/vendor/linear.hpp"

#include "core/base/check.hpp"

namespace carousel::vendor {

Linear::Linear(const LayerSpec& spec, int samples, const Engine& engine)
    : tokens_(spec.output.height),
      weights_(spec.weights().size()),
      weight_bytes_(spec.weights().stored_bytes()),
      learns_(!spec.is_frozen()),
      products_(engine, spec.label(), spec.input().channels, spec.output.channels,
                spec.output_format.type, samples * tokens_) {
  CAROUSEL_CHECK(weights_ == std::int64_t{spec.output.channels} * spec.input().channels &&
                     spec.parameter_size() == weights_ + spec.output.channels,
                 "linear layer {} has {} parameters", spec.name, spec.parameter_size());
}

void Linear::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  const auto* weights = reinterpret_cast<const std::byte*>(arguments.parameters);
  products_.forward(exec, arguments.input.n * tokens_, arguments.input.data, weights,
                    reinterpret_cast<const real*>(weights + weight_bytes_), arguments.output.data);
}

void Linear::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  const int rows = arguments.input.n * tokens_;
  if (learns_)
    products_.find_parameter_gradients(exec, rows, arguments.input.data, arguments.d_output.data,
                                       arguments.d_parameters, arguments.d_parameters + weights_);
  if (arguments.d_input.data == nullptr) return;
  products_.find_input_gradient(exec, rows, arguments.parameters, arguments.d_output.data,
                                arguments.d_input.data, arguments.adds_input);
}

}  // namespace carousel::vendor
