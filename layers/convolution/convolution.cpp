// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/convolution/convolution.hpp"

#include "layers/channel_sums.hpp"
#include "layers/convolution/op.hpp"
#include "layers/gemm.hpp"
#include "layers/windows.hpp"

namespace carousel {
namespace {

/// The windows of the image that the outputs look through.
detail::Windows windows_of(const ConstTensor& x, const SampleShape& out, const Window& window) {
  detail::Windows windows = {.data = x.data,
                             .image_stride = x.shape.size(),
                             .h = x.shape.height,
                             .w = x.shape.width,
                             .planes_h = out.height,
                             .planes_w = out.width,
                             .kernel = window.kernel,
                             .multiply = window.stride,
                             .offset = -window.padding,
                             .step = 1,
                             .divide = 1};
  if (window == Window{}) {  // one by one: a plane is one long row
    windows.w = windows.planes_w = x.shape.height * x.shape.width;
    windows.h = windows.planes_h = 1;
  }
  return windows;
}

/// The windows of the output's gradient that the inputs look through.
detail::Windows transposed_windows(const ConstTensor& d_y, const SampleShape& in,
                                   const Window& window) {
  detail::Windows windows = windows_of(d_y, in, window);
  windows.multiply = 1;
  windows.offset = window.padding;
  windows.step = -1;
  windows.divide = window.stride;
  return windows;
}

/// sums[c] = sum of channel c over images and pixels.
void sum_channels(const ExecutionSpace& exec, const ConstTensor& d_y, real* sums) {
  static const std::string label = "carousel::layers::convolution_backward_bias";
  const real* d = d_y.data;
  const int n = d_y.n;
  const SampleShape shape = d_y.shape;
  Kokkos::parallel_for(
      label, detail::channel_teams(exec, shape.channels), KOKKOS_LAMBDA(const Team& team) {
        const int c = team.league_rank();
        const detail::TwoSums sum =
            detail::sum_channel(team, detail::ChannelPixels(n, shape, c), [&](std::int64_t i) {
              return detail::TwoSums{d[i], 0};
            });
        Kokkos::single(Kokkos::PerTeam(team), [&] { sums[c] = static_cast<real>(sum.first); });
      });
}

}  // namespace

Convolution::Convolution(const LayerSpec& spec, int before)
    : in_(spec.input()),
      out_(spec.output),
      window_(spec.is("linear") ? Window{} : spec.as<op::Convolution>().window),
      taps_(window_.kernel * window_.kernel),
      in_pixels_(in_.height * in_.width),
      out_pixels_(out_.height * out_.width),
      before_(before),
      has_bias_(spec.parameters.size() == 2) {
  const auto extent = [&](int size) {
    return (size + 2 * window_.padding - window_.kernel) / window_.stride + 1;
  };
  CAROUSEL_CHECK(extent(in_.height) == out_.height && extent(in_.width) == out_.width,
                 "convolution {}: {} becomes {}", spec.name, to_string(in_), to_string(out_));
  const std::int64_t weights = std::int64_t{out_.channels} * in_.channels * taps_;
  CAROUSEL_CHECK(spec.parameter_size() == weights + (has_bias_ ? out_.channels : 0),
                 "convolution {} has {} parameters", spec.name, spec.parameter_size());
}

void Convolution::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::convolution_forward";
  const ConstTensor& x = arguments.input;
  const int k = in_.channels * taps_;
  const GemmShape shape = {out_.channels, x.n * out_pixels_, k};
  const Vectors weight = {arguments.parameters, k, 1};
  const detail::Windows windows = windows_of(x, out_, window_);
  const std::int64_t plane = out_pixels_ + before_;
  const Matrix y = {.data = arguments.output.data + before_,
                    .row_stride = plane,
                    .block = out_pixels_,
                    .block_stride = out_.channels * plane};
  if (has_bias_)
    gemm(exec, label, shape, weight, windows, y,
         AddToRows{arguments.parameters + std::int64_t{out_.channels} * k});
  else
    gemm(exec, label, shape, weight, windows, y);
}

void Convolution::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string weight_label = "carousel::layers::convolution_backward_weight";
  static const std::string input_label = "carousel::layers::convolution_backward_input";
  const ConstTensor& x = arguments.input;
  const ConstTensor d_y = arguments.d_output;
  const int taps = in_.channels * taps_;
  const std::int64_t plane = out_pixels_ + before_;
  gemm(exec, weight_label, {out_.channels, taps, x.n * out_pixels_},
       Vectors{d_y.data + before_, plane, 1, out_pixels_, out_.channels * plane},
       detail::WindowTaps{windows_of(x, out_, window_)}, {arguments.d_parameters, taps});
  if (has_bias_)
    sum_channels(exec, d_y, arguments.d_parameters + std::int64_t{out_.channels} * taps);
  if (arguments.d_input.data == nullptr) return;
  CAROUSEL_CHECK(before_ == 0, "a convolution of {} before other pixels", to_string(in_));
  // With a stride, most taps meet the zeros between the outputs; networks have few such layers.
  const Vectors weight = {arguments.parameters, taps_, 1, taps_, taps};
  const Vectors pointwise = {arguments.parameters, 1, taps};
  gemm(exec, input_label, {in_.channels, x.n * in_pixels_, out_.channels * taps_},
       taps_ == 1 ? pointwise : weight, transposed_windows(d_y, in_, window_),
       {.data = arguments.d_input.data,
        .row_stride = in_pixels_,
        .adds = arguments.adds_input,
        .block = in_pixels_,
        .block_stride = in_.size()});
}

}  // namespace carousel
