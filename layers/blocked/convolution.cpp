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
#include "layers/stored.hpp"

namespace carousel::blocked {
namespace {

/// A plane as one long row, if one pixel meets one pixel: short rows fill no register tile.
bool is_flat(const Window& window, const SampleShape& shape, bool reads_images) {
  constexpr int largest = 256;
  return window.is_one_to_one() && !reads_images && (shape.width == 1 || shape.pixels() <= largest);
}

template <class Stored, class Number>
Planes<Stored> planes_of(const BasicTensor<Number>& tensor, bool flat) {
  Planes<Stored> planes(tensor);
  if (flat) {
    planes.w *= planes.d * planes.h;
    planes.d = planes.h = 1;
  }
  return planes;
}

}  // namespace

Convolution::Convolution(const LayerSpec& spec, const Engine& engine, int before)
    : in_(spec.input()),
      out_(spec.output),
      type_(spec.output_format.type),
      products_(spec.products),
      kind_(spec.is("linear") ? op::Convolution{} : spec.as<op::Convolution>()),
      reads_images_(!lies_in_blocks(spec.input(), spec.inputs.front().format, lanes)),
      flat_(is_flat(kind_.window, out_, reads_images_)),
      before_(before),
      learns_(!spec.is_frozen()),
      norm_size_(kind_.normalises ? 2 * std::int64_t{in_.channels} : 0),
      weights_(spec.weights().size()),
      bias_(behind_weights(spec)),
      workspace_(engine.workspace) {
  const Window& window = kind_.window;
  const int taps = window.taps();
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
    strides_.taps = taps / window.kernel;
    strides_.tap = window.kernel;
    strides_.channels = in_.channels;
  }
  windows_ = output_windows(window, out_, reads_images_ ? in_.channels : 0);
  if (!reads_images_) grids_ = input_grids(window, in_);
  if (!flat_) return;
  windows_ = flattened(std::move(windows_));
  for (Windows& grid : grids_) grid = flattened(std::move(grid));
}

template <class Stored, class Number>
Planes<Stored> Convolution::output_planes(const BasicTensor<Number>& tensor) const {
  auto planes = planes_of<Stored>(BasicTensor<Number>{tensor.data, tensor.n, out_}, flat_);
  planes.before = before_;
  return planes;
}

template <class Stored, class Source>
void Convolution::convolve(const ExecutionSpace& exec, const ForwardArguments& arguments,
                           const Source& source) {
  static const std::string label = "carousel::layers::convolution_forward";
  static const std::string pack_label = "carousel::layers::convolution_pack";
  const real* parameters = arguments.parameters + norm_size_;
  const auto* weights = reinterpret_cast<const Stored*>(parameters);
  const auto y = output_planes<Stored>(arguments.output);
  const Beginning beginning = {.bias = has_bias_ ? parameters + bias_ : nullptr};
  if constexpr (!Source::changes) {
    if (reads_images_) {
      auto* packed = workspace<real>();
      pack_weights<FullProducts>(exec, pack_label, strides_, weights, y.blocks, 1, windows_.depth,
                                 packed);
      blocked::convolve<FullProducts>(exec, label, windows_, ImageInput{arguments.input}, packed,
                                      strides_.taps, y, beginning);
      return;
    }
  }
  const auto x = planes_of<const Stored>(arguments.input, flat_);
  if (kind_.winograd) {
    winograd::convolve<Stored>(exec, label,
                               {winograd::Direction::output, in_.channels, out_.channels, weights},
                               x, source, y, false, workspace<real>());
    return;
  }
  with_products<Stored>(products_, [&]<class Products>(std::type_identity<Products>) {
    auto* packed = workspace<Stored>();
    pack_weights<Products>(exec, pack_label, strides_, weights, y.blocks, x.blocks, lanes, packed);
    blocked::convolve<Products>(exec, label, windows_, BlockedInput<Source, Stored>{x, source},
                                packed, strides_.taps, y, beginning);
  });
}

template <class Stored>
void Convolution::convolve(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  if (!kind_.normalises) return convolve<Stored>(exec, arguments, Plain{});
  const NormStatistics statistics =
      find_statistics<Stored>(exec, arguments, kind_.epsilon, workspace_);
  convolve<Stored>(exec, arguments, NormRelu{statistics.scale, statistics.shift});
}

void Convolution::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  with_stored(type_, [&]<class Stored>() { convolve<Stored>(exec, arguments); });
}

template <class Stored, class Source>
void Convolution::weight_gradient(const ExecutionSpace& exec, const BackwardArguments& arguments,
                                  const Source& source) {
  static const std::string label = "carousel::layers::convolution_backward_weight";
  static const std::string bias_label = "carousel::layers::convolution_backward_bias";
  if (!learns_) return;
  real* d_weights = arguments.d_parameters + norm_size_;
  const auto d_y = output_planes<const Stored>(arguments.d_output);
  if (has_bias_) bias_gradient(exec, bias_label, d_y, d_weights + weights_);
  if constexpr (!Source::changes) {
    if (reads_images_)
      return blocked::weight_gradient<FullProducts>(exec, label, windows_,
                                                    ImageInput{arguments.input}, d_y, strides_,
                                                    workspace<real>(), d_weights);
  }
  const auto x = planes_of<const Stored>(arguments.input, flat_);
  if (kind_.winograd)
    return winograd::weight_gradient(exec, label, x, source, d_y, workspace<real>(), d_weights);
  with_products<Stored>(products_, [&]<class Products>(std::type_identity<Products>) {
    blocked::weight_gradient<Products>(exec, label, windows_,
                                       BlockedInput<Source, Stored>{x, source}, d_y, strides_,
                                       workspace<real>(), d_weights);
  });
}

template <class Stored>
void Convolution::input_gradient(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::convolution_backward_input";
  static const std::string pack_label = "carousel::layers::convolution_backward_pack";
  const auto* weights = reinterpret_cast<const Stored*>(arguments.parameters + norm_size_);
  const auto d_y = output_planes<const Stored>(arguments.d_output);
  const auto d_x = planes_of<Stored>(arguments.d_input, flat_);
  const bool adds = arguments.adds_input;
  if (kind_.winograd) {
    return winograd::convolve<Stored>(
        exec, label, {winograd::Direction::d_input, in_.channels, out_.channels, weights}, d_y,
        Plain{}, d_x, adds, workspace<real>());
  }
  with_products<Stored>(products_, [&]<class Products>(std::type_identity<Products>) {
    const WeightStrides strides = strides_.turned();
    auto* packed = workspace<Stored>();
    pack_weights<Products>(exec, pack_label, strides, weights, d_x.blocks, d_y.blocks, lanes,
                           packed);
    for (const Windows& grid : grids_) {
      if (!grid.taps.empty())
        blocked::convolve<Products>(exec, label, grid, BlockedInput<Plain, Stored>{d_y, {}}, packed,
                                    strides.taps, d_x, {.adds = adds});
      else if (!adds)
        clear_grid(exec, label, grid, d_x);
    }
  });
}

template <class Stored>
void Convolution::differentiate(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  if (!kind_.normalises) {
    weight_gradient<Stored>(exec, arguments, Plain{});
    if (arguments.d_input.data != nullptr) input_gradient<Stored>(exec, arguments);
    return;
  }
  const NormStatistics saved(const_cast<std::byte*>(arguments.saved), in_.channels);
  weight_gradient<Stored>(exec, arguments, NormRelu{saved.scale, saved.shift});
  CAROUSEL_CHECK(arguments.d_input.data != nullptr && !arguments.adds_input,
                 "what is normalised has one reader, and its batch norm learns");
  input_gradient<Stored>(exec, arguments);
  const Planes<Stored> d_x(arguments.d_input);
  norm_gradient(
      exec, Mask::input,
      NormGradient<Stored>{.x = Planes<const Stored>(arguments.input), .d_y = d_x, .d_x = d_x},
      saved, workspace<double>(), arguments.d_parameters, arguments.statistics);
}

void Convolution::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  with_stored(type_, [&]<class Stored>() { differentiate<Stored>(exec, arguments); });
}

std::unique_ptr<Layer> convolution(const LayerSpec& spec, const Engine& engine, int before) {
  return std::make_unique<Convolution>(spec, engine, before);
}

}  // namespace carousel::blocked
