// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/convolution.hpp"

#include <utility>

#include "core/base/check.hpp"
#include "core/model/op.hpp"
#include "layers/blocked/blocked.hpp"
#include "layers/blocked/direct_weights.hpp"
#include "layers/blocked/grids.hpp"
#include "layers/blocked/norm_kernels.hpp"
#include "layers/blocked/winograd.hpp"
#include "layers/blocked/winograd_weights.hpp"
#include "layers/convolution/op.hpp"

namespace carousel::blocked {
namespace {

/// A plane as one long row, if one pixel meets one pixel: short rows fill no register tile.
bool is_flat(const Window& window, const SampleShape& shape, bool reads_images) {
  constexpr int largest = 256;
  return window == Window{} && !reads_images &&
         (shape.width == 1 || shape.height * shape.width <= largest);
}

template <class Real>
Planes<Real> planes_of(const BasicTensor<Real>& tensor, bool flat) {
  Planes<Real> planes(tensor);
  if (flat) {
    planes.w *= planes.h;
    planes.h = 1;
  }
  return planes;
}

}  // namespace

Convolution::Convolution(const LayerSpec& spec, const Engine& engine, int before)
    : in_(spec.input()),
      out_(spec.output),
      kind_(spec.is("linear") ? op::Convolution{} : spec.as<op::Convolution>()),
      reads_images_(!lies_in_blocks(spec.input(), spec.inputs.front().format, lanes)),
      flat_(is_flat(kind_.window, out_, reads_images_)),
      before_(before),
      norm_size_(kind_.normalises ? 2 * std::int64_t{in_.channels} : 0),
      weights_(spec.weights().size()),
      workspace_(engine.workspace) {
  const Window& window = kind_.window;
  const int taps = window.kernel * window.kernel;
  has_bias_ = spec.parameter_size() > norm_size_ + weights_;
  CAROUSEL_CHECK(weights_ == std::int64_t{out_.channels} * in_.channels * taps &&
                     spec.parameter_size() ==
                         norm_size_ + weights_ + (has_bias_ ? std::int64_t{out_.channels} : 0),
                 "convolution {} has {} parameters", spec.name, spec.parameter_size());
  CAROUSEL_CHECK(out_.channels % lanes == 0 && (reads_images_ || in_.channels % lanes == 0),
                 "convolution {}: {} and {} channels are not in blocks of {}", spec.name,
                 in_.channels, out_.channels, lanes);
  CAROUSEL_CHECK(!kind_.winograd || (window == Window{3, 1, 1} && !reads_images_ && !has_bias_),
                 "convolution {} is none for Winograd", spec.name);
  CAROUSEL_CHECK(!(reads_images_ && kind_.normalises), "convolution {} normalises images",
                 spec.name);
  strides_ = {.result = std::int64_t{in_.channels} * taps, .sum = taps, .taps = taps};
  if (reads_images_) {
    strides_.taps = strides_.tap = window.kernel;
    strides_.channels = in_.channels;
  }
  windows_ = output_windows(window, out_, reads_images_ ? in_.channels : 0);
  if (!reads_images_) grids_ = input_grids(window, in_);
  if (!flat_) return;
  windows_ = flattened(std::move(windows_));
  for (Windows& grid : grids_) grid = flattened(std::move(grid));
}

template <class Real>
Planes<Real> Convolution::output_planes(const BasicTensor<Real>& tensor) const {
  Planes<Real> planes = planes_of(BasicTensor<Real>{tensor.data, tensor.n, out_}, flat_);
  planes.before = before_;
  return planes;
}

template <class Source>
void Convolution::convolve(const ExecutionSpace& exec, const ForwardArguments& arguments,
                           const Source& source) {
  static const std::string label = "carousel::layers::convolution_forward";
  static const std::string pack_label = "carousel::layers::convolution_pack";
  const real* weights = arguments.parameters + norm_size_;
  const auto x = planes_of(arguments.input, flat_);
  const auto y = output_planes(arguments.output);
  if (kind_.winograd) {
    winograd::convolve(exec, label,
                       {winograd::Direction::output, in_.channels, out_.channels, weights}, x,
                       source, y, false, workspace());
    return;
  }
  const Beginning beginning = {.bias = has_bias_ ? weights + weights_ : nullptr};
  const int blocks = reads_images_ ? 1 : x.blocks;
  pack_weights(exec, pack_label, strides_, weights, y.blocks, blocks, windows_.depth, workspace());
  if constexpr (!Source::changes) {
    if (reads_images_) {
      blocked::convolve(exec, label, windows_, ImageInput{arguments.input}, workspace(),
                        strides_.taps, y, beginning);
      return;
    }
  }
  blocked::convolve(exec, label, windows_, BlockedInput<Source>{x, source}, workspace(),
                    strides_.taps, y, beginning);
}

void Convolution::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  if (!kind_.normalises) return convolve(exec, arguments, Plain{});
  const NormStatistics statistics = find_statistics(exec, arguments, kind_.epsilon, workspace_);
  convolve(exec, arguments, NormRelu{statistics.scale, statistics.shift});
}

template <class Source>
void Convolution::weight_gradient(const ExecutionSpace& exec, const BackwardArguments& arguments,
                                  const Source& source) {
  static const std::string label = "carousel::layers::convolution_backward_weight";
  static const std::string bias_label = "carousel::layers::convolution_backward_bias";
  real* d_weights = arguments.d_parameters + norm_size_;
  const auto x = planes_of(arguments.input, flat_);
  const auto d_y = output_planes(ConstTensor(arguments.d_output));
  if (has_bias_) bias_gradient(exec, bias_label, d_y, d_weights + weights_);
  if (kind_.winograd)
    return winograd::weight_gradient(exec, label, x, source, d_y, workspace(), d_weights);
  if constexpr (!Source::changes) {
    if (reads_images_)
      return blocked::weight_gradient(exec, label, windows_, ImageInput{arguments.input}, d_y,
                                      strides_, workspace(), d_weights);
  }
  blocked::weight_gradient(exec, label, windows_, BlockedInput<Source>{x, source}, d_y, strides_,
                           workspace(), d_weights);
}

void Convolution::input_gradient(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::convolution_backward_input";
  static const std::string pack_label = "carousel::layers::convolution_backward_pack";
  const real* weights = arguments.parameters + norm_size_;
  const auto d_y = output_planes(ConstTensor(arguments.d_output));
  const auto d_x = planes_of(arguments.d_input, flat_);
  const bool adds = arguments.adds_input;
  if (kind_.winograd) {
    return winograd::convolve(exec, label,
                              {winograd::Direction::d_input, in_.channels, out_.channels, weights},
                              d_y, Plain{}, d_x, adds, workspace());
  }
  const WeightStrides strides = strides_.turned();
  pack_weights(exec, pack_label, strides, weights, d_x.blocks, d_y.blocks, lanes, workspace());
  for (const Windows& grid : grids_) {
    if (!grid.taps.empty())
      blocked::convolve(exec, label, grid, BlockedInput<Plain>{d_y, {}}, workspace(), strides.taps,
                        d_x, {.adds = adds});
    else if (!adds)
      clear_grid(exec, label, grid, d_x);
  }
}

void Convolution::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  if (!kind_.normalises) {
    weight_gradient(exec, arguments, Plain{});
    if (arguments.d_input.data != nullptr) input_gradient(exec, arguments);
    return;
  }
  const NormStatistics saved(const_cast<std::byte*>(arguments.saved), in_.channels);
  weight_gradient(exec, arguments, NormRelu{saved.scale, saved.shift});
  CAROUSEL_CHECK(arguments.d_input.data != nullptr && !arguments.adds_input,
                 "what is normalised has one reader, and its batch norm learns");
  input_gradient(exec, arguments);
  const Planes<real> d_x(arguments.d_input);
  norm_gradient(
      exec, Mask::input, {.x = Planes<const real>(arguments.input), .d_y = d_x, .d_x = d_x}, saved,
      reinterpret_cast<double*>(workspace_.data()), arguments.d_parameters, arguments.statistics);
}

std::unique_ptr<Layer> convolution(const LayerSpec& spec, const Engine& engine, int before) {
  return std::make_unique<Convolution>(spec, engine, before);
}

}  // namespace carousel::blocked
