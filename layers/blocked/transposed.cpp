// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/transposed.hpp"

#include "core/base/check.hpp"
#include "layers/blocked/blocked.hpp"
#include "layers/blocked/direct_weights.hpp"
#include "layers/blocked/grids.hpp"
#include "layers/conv_transpose/op.hpp"
#include "layers/stored.hpp"

namespace carousel::blocked {

TransposedConvolution::TransposedConvolution(const LayerSpec& spec, const Engine& engine)
    : type_(spec.output_format.type),
      products_(spec.products),
      weights_(spec.weights().size()),
      bias_(behind_weights(spec)),
      has_bias_(spec.parameters.size() > 1),
      learns_(!spec.is_frozen()),
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

template <class Stored>
void TransposedConvolution::spread(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::conv_transpose_forward";
  static const std::string pack_label = "carousel::layers::conv_transpose_pack";
  const Planes<const Stored> x(arguments.input);
  const Planes<Stored> y(arguments.output);
  const auto* weights = reinterpret_cast<const Stored*>(arguments.parameters);
  const Beginning beginning = {.bias = has_bias_ ? arguments.parameters + bias_ : nullptr};
  with_products<Stored>(products_, [&]<class Products>(std::type_identity<Products>) {
    const WeightStrides back = strides_.turned();
    auto* packed = workspace<Stored>();
    pack_weights<Products>(exec, pack_label, back, weights, y.blocks, x.blocks, lanes, packed);
    for (const Windows& grid : grids_)
      convolve<Products>(exec, label, grid, BlockedInput<Plain, Stored>{x, {}}, packed, back.taps,
                         y, beginning);
  });
}

template <class Stored>
void TransposedConvolution::differentiate(const ExecutionSpace& exec,
                                          const BackwardArguments& arguments) {
  static const std::string weight_label = "carousel::layers::conv_transpose_backward_weight";
  static const std::string bias_label = "carousel::layers::conv_transpose_backward_bias";
  static const std::string pack_label = "carousel::layers::conv_transpose_backward_pack";
  static const std::string label = "carousel::layers::conv_transpose_backward_input";
  const Planes<const Stored> x(arguments.input);
  const Planes<const Stored> d_y(arguments.d_output);
  const BlockedInput<Plain, Stored> gradients{d_y, {}};
  if (has_bias_ && learns_) bias_gradient(exec, bias_label, d_y, arguments.d_parameters + weights_);
  with_products<Stored>(products_, [&]<class Products>(std::type_identity<Products>) {
    if (learns_)
      weight_gradient<Products>(exec, weight_label, windows_, gradients, x, strides_,
                                workspace<real>(), arguments.d_parameters);
    if (arguments.d_input.data == nullptr) return;
    const Planes<Stored> d_x(arguments.d_input);
    auto* packed = workspace<Stored>();
    pack_weights<Products>(exec, pack_label, strides_,
                           reinterpret_cast<const Stored*>(arguments.parameters), d_x.blocks,
                           d_y.blocks, lanes, packed);
    convolve<Products>(exec, label, windows_, gradients, packed, strides_.taps, d_x,
                       {.adds = arguments.adds_input});
  });
}

void TransposedConvolution::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  with_stored(type_, [&]<class Stored>() { spread<Stored>(exec, arguments); });
}

void TransposedConvolution::backward(const ExecutionSpace& exec,
                                     const BackwardArguments& arguments) {
  with_stored(type_, [&]<class Stored>() { differentiate<Stored>(exec, arguments); });
}

std::unique_ptr<Layer> conv_transpose(const LayerSpec& spec, const Engine& engine) {
  return std::make_unique<TransposedConvolution>(spec, engine);
}

}  // namespace carousel::blocked
