// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/vendor/convolution.hpp"

#include <array>

#include "core/base/check.hpp"
#include "layers/add_numbers.hpp"
#include "layers/channels_last/norm_kernels.hpp"
#include "layers/convolution/op.hpp"
#include "layers/vendor/handles.hpp"

namespace carousel::vendor {

Convolution::Convolution(const LayerSpec& spec, int samples, const Engine& engine)
    : spec_(spec),
      kind_(spec.as<op::Convolution>()),
      names_{spec.label(), spec.label() + ", gradient of the input",
             spec.label() + ", gradient of the weights"},
      type_(spec.output_format.type),
      graphs_(*engine.vendor->graphs),
      workspace_(engine.workspace),
      memory_(convolution_memory(spec, samples)),
      weights_{spec.output.channels, spec.input().channels,
               kind_.window.kernel * kind_.window.kernel, memory_.channels},
      weights_at_(0),
      d_weights_at_(spec.parameter_size() - spec.weights().size()) {
  CAROUSEL_CHECK(spec.weights().size() == weights_.outer * weights_.channels * weights_.pixels &&
                     d_weights_at_ == (kind_.normalises ? 2 * weights_.channels : 0),
                 "convolution {} has {} parameters", spec.name, spec.parameter_size());
  for (const ParameterSpec& parameter : spec.parameters) {
    if (&parameter == &spec.weights()) break;
    weights_at_ += parameter.stored_bytes();
  }
}

ConvolutionShape Convolution::shape(int n, bool normalises) const {
  SampleShape in = spec_.input();
  in.channels = memory_.channels;
  const Window& window = kind_.window;
  return {n, in, spec_.output, window.kernel, window.stride, window.padding, type_, normalises};
}

Tensor Convolution::images(int n) const {
  return {reinterpret_cast<real*>(workspace_.data() + memory_.images), n, spec_.input()};
}

double* Convolution::sums() const {
  return reinterpret_cast<double*>(workspace_.data() + memory_.sums);
}

void* Convolution::reordered_weights() const {
  return workspace_.data() + memory_.weights;
}

/// Whether weights lie as cuDNN wants them, by themselves.
bool Convolution::is_ordered(const void* weights) const {
  constexpr std::uintptr_t vector = 16;
  return weights_.pixels == 1 && weights_.filled == weights_.channels &&
         reinterpret_cast<std::uintptr_t>(weights) % vector == 0;
}

void Convolution::convolve(const ConvolutionShape& shape, Pass pass, DataType result,
                           const void* first, const void* second, void* to,
                           const NormStatistics* norm) const {
  const std::string& name = names_[static_cast<std::size_t>(pass)];
  std::array<void*, 5> tensors = {const_cast<void*>(first), const_cast<void*>(second), to};
  if (shape.normalises) {
    CAROUSEL_CHECK(norm != nullptr, "{}: no norm", name);
    tensors[3] = norm->scale;
    tensors[4] = norm->shift;
  }
  const std::size_t count = shape.normalises ? 5 : 3;
  graphs_.convolution(name, shape, pass, result, memory_.library)(
      name, std::span(tensors).first(count),
      workspace_.first(static_cast<std::size_t>(memory_.library)));
}

const void* Convolution::convolved_images(const ExecutionSpace& exec, const ConstTensor& input,
                                          const NormStatistics* norm) const {
  const Tensor made = images(input.n);
  if (norm != nullptr) {
    channels_last::normalise(exec, type_, input, {}, *norm, true, made);
    return made.data;
  }
  if (spec_.inputs[0].format.block > 1) return input.data;
  const SampleShape& image = input.shape;
  put_channels_last(exec, {input.n, image.channels, image.height * image.width, memory_.channels},
                    spec_.inputs[0].format.type, input.data, type_, made.data);
  return made.data;
}

const void* Convolution::convolved_weights(const ExecutionSpace& exec,
                                           const real* parameters) const {
  const std::byte* weights = reinterpret_cast<const std::byte*>(parameters) + weights_at_;
  if (is_ordered(weights)) return weights;
  put_channels_last(exec, weights_, type_, weights, type_, reordered_weights());
  return reordered_weights();
}

void Convolution::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  const ConstTensor& x = arguments.input;
  const void* const weights = convolved_weights(exec, arguments.parameters);
  if (!kind_.normalises) {
    convolve(shape(x.n), Pass::forward, type_, convolved_images(exec, x, nullptr), weights,
             arguments.output.data);
    return;
  }
  const NormStatistics norm = channels_last::find_statistics(exec, type_, arguments, kind_.epsilon,
                                                             arguments.parameters, sums());
  const ConvolutionShape fused = shape(x.n, true);
  const bool is_fused =
      graphs_.find_convolution(fused, Pass::forward, type_, memory_.library) != nullptr;
  convolve(is_fused ? fused : shape(x.n), Pass::forward, type_,
           is_fused ? x.data : convolved_images(exec, x, &norm), weights, arguments.output.data,
           &norm);
}

void Convolution::find_weight_gradient(const ExecutionSpace& exec,
                                       const BackwardArguments& arguments,
                                       const NormStatistics* norm) {
  const ConstTensor& x = arguments.input;
  real* const to = arguments.d_parameters + d_weights_at_;
  // Rounded where there is an engine for it, as other frameworks have them: for full gradients of
  // rounded images cuDNN has one, which gives few multiprocessors all the work. It took 49 of the
  // 76 ms of a step of ResNet-50 on an H200. So would one that normalises on the way.
  const bool is_rounded =
      graphs_.find_convolution(shape(x.n), Pass::d_weights, type_, memory_.library) != nullptr;
  has_slow_gradient_ = !is_rounded && type_ == DataType::bfloat16;
  const DataType result = is_rounded ? type_ : DataType::full;
  const bool is_in_place = result == DataType::full && is_ordered(to);
  void* const made = is_in_place ? to : reordered_weights();
  convolve(shape(x.n), Pass::d_weights, result, convolved_images(exec, x, norm),
           arguments.d_output.data, made);
  if (!is_in_place) put_channels_first(exec, weights_, result, made, to);
}

void Convolution::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::convolution_backward_add";
  const ConstTensor& x = arguments.input;
  const NormStatistics statistics(const_cast<std::byte*>(arguments.saved), spec_.input().channels);
  if (!spec_.is_frozen())
    find_weight_gradient(exec, arguments, kind_.normalises ? &statistics : nullptr);
  const Tensor& d_x = arguments.d_input;
  if (d_x.data == nullptr && !kind_.normalises) return;
  const bool is_apart = kind_.normalises || arguments.adds_input;
  const Tensor made = is_apart ? images(x.n) : d_x;
  convolve(shape(x.n), Pass::d_input, type_, arguments.d_output.data,
           convolved_weights(exec, arguments.parameters), made.data);
  if (kind_.normalises) {
    channels_last::norm_gradient(exec, type_, Mask::input,
                                 {.x = x, .d_y = made, .d_x = d_x, .adds = arguments.adds_input},
                                 statistics, sums(), arguments.d_parameters, arguments.statistics);
  } else if (is_apart) {
    with_stored(type_, [&]<class Stored>() { hand_on<Stored>(exec, label, made, d_x, true); });
  }
}

}  // namespace carousel::vendor
