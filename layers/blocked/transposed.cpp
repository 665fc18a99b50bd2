// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/transposed.hpp"

#include "core/base/check.hpp"
#include "layers/blocked/blocked.hpp"
#include "layers/blocked/direct_weights.hpp"
#include "layers/blocked/grids.hpp"
#include "layers/conv_transpose/op.hpp"

namespace carousel::blocked {

TransposedConvolution::TransposedConvolution(const LayerSpec& spec, const Engine& engine)
    : weights_(spec.weights().size()),
      has_bias_(spec.parameters.size() > 1),
      workspace_(engine.workspace) {
  const auto& kind = spec.as<op::TransposedConvolution>();
  const int taps = kind.window.taps();
  CAROUSEL_CHECK(spec.input().channels % lanes == 0 && spec.output.channels % lanes == 0 &&
                     kind.groups == 1 && kind.window.is_simple() &&
                     kind.window.kernel >= kind.window.stride,
                 "{} is not for kernels in blocks of {}", spec.label(), lanes);
  strides_ = {.result = std::int64_t{spec.output.channels} * taps, .sum = taps, .taps = taps};
  windows_ = output_windows(kind.window, spec.input());
  grids_ = input_grids(kind.window, spec.output);
}

void TransposedConvolution::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::conv_transpose_forward";
  static const std::string pack_label = "carousel::layers::conv_transpose_pack";
  const Planes<const real> x(arguments.input);
  const Planes<real> y(arguments.output);
  const WeightStrides back = strides_.turned();
  const real* bias = has_bias_ ? arguments.parameters + weights_ : nullptr;
  pack_weights(exec, pack_label, back, arguments.parameters, y.blocks, x.blocks, lanes,
               workspace());
  for (const Windows& grid : grids_)
    convolve(exec, label, grid, BlockedInput<Plain>{x, {}}, workspace(), back.taps, y,
             {.bias = bias});
}

void TransposedConvolution::backward(const ExecutionSpace& exec,
                                     const BackwardArguments& arguments) {
  static const std::string weight_label = "carousel::layers::conv_transpose_backward_weight";
  static const std::string bias_label = "carousel::layers::conv_transpose_backward_bias";
  static const std::string pack_label = "carousel::layers::conv_transpose_backward_pack";
  static const std::string label = "carousel::layers::conv_transpose_backward_input";
  const Planes<const real> x(arguments.input);
  const Planes<const real> d_y{ConstTensor(arguments.d_output)};
  const BlockedInput<Plain> gradients{d_y, {}};
  weight_gradient(exec, weight_label, windows_, gradients, x, strides_, workspace(),
                  arguments.d_parameters);
  if (has_bias_) bias_gradient(exec, bias_label, d_y, arguments.d_parameters + weights_);
  if (arguments.d_input.data == nullptr) return;
  const Planes<real> d_x(arguments.d_input);
  pack_weights(exec, pack_label, strides_, arguments.parameters, d_x.blocks, d_y.blocks, lanes,
               workspace());
  convolve(exec, label, windows_, gradients, workspace(), strides_.taps, d_x,
           {.adds = arguments.adds_input});
}

std::unique_ptr<Layer> conv_transpose(const LayerSpec& spec, const Engine& engine) {
  return std::make_unique<TransposedConvolution>(spec, engine);
}

}  // namespace carousel::blocked
