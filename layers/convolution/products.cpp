// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/convolution/products.hpp"

#include "core/base/range.hpp"
#include "layers/channel_sums.hpp"
#include "layers/gemm.hpp"
#include "layers/pixel.hpp"
#include "layers/windows.hpp"

namespace carousel {
namespace {

/// Windows of an image of `channels`, from channel `first` on, as many as `grid` has pixels.
detail::Windows windows_of(const ConstTensor& x, int first, const SampleShape& grid,
                           const Window& window) {
  detail::Windows windows = {.data = x.data + first * x.shape.pixels(),
                             .image_stride = x.shape.size(),
                             .d = x.shape.depth,
                             .h = x.shape.height,
                             .w = x.shape.width,
                             .planes_d = grid.depth,
                             .planes_h = grid.height,
                             .planes_w = grid.width,
                             .kernel_d = window.slices(),
                             .kernel_h = window.kernel,
                             .kernel_w = window.columns(),
                             .multiply = window.stride,
                             .offset_d = -window.padding_slices(),
                             .offset = -window.padding,
                             .offset_w = -window.padding_columns(),
                             .step = window.dilation,
                             .divide = 1};
  if (window.is_one_to_one()) {  // a plane is one long row
    windows.w = windows.planes_w = static_cast<int>(x.shape.pixels());
    windows.d = windows.planes_d = windows.h = windows.planes_h = 1;
  }
  return windows;
}

/// The windows of small through which the pixels of wide are seen.
detail::Windows transposed_windows(const ConstTensor& small, int first, const SampleShape& wide,
                                   const Window& window) {
  detail::Windows windows = windows_of(small, first, wide, window);
  windows.multiply = 1;
  windows.offset_d = window.padding_slices();
  windows.offset = window.padding;
  windows.offset_w = window.padding_columns();
  windows.step = -window.dilation;
  windows.divide = window.stride;
  return windows;
}

int pixels_of(const SampleShape& shape) {
  return static_cast<int>(shape.pixels());
}

/// Groups of one channel of wide, whose products are too small to be worth packing.
class Depthwise {
 public:
  explicit Depthwise(const WindowProducts& of)
      : channels_(of.small.channels),
        multiplier_(of.small.channels / of.wide.channels),
        d_(of.wide.depth),
        h_(of.wide.height),
        w_(of.wide.width),
        od_(of.small.depth),
        oh_(of.small.height),
        ow_(of.small.width),
        kernel_d_(of.window.slices()),
        kernel_h_(of.window.kernel),
        kernel_w_(of.window.columns()),
        stride_(of.window.stride),
        padding_d_(of.window.padding_slices()),
        padding_h_(of.window.padding),
        padding_w_(of.window.padding_columns()),
        dilation_(of.window.dilation) {}

  /// Number i of small.
  [[nodiscard]] KOKKOS_FUNCTION real seen(std::int64_t i, const real* wide,
                                          const real* weights) const {
    const Pixel at(i, od_, oh_, ow_);
    const real* const x = wide + plane_of_wide(at.plane) * pixels_of_wide();
    const real* const w = weights + at.plane % channels_ * taps();
    real sum = 0;
    for (int k = 0; k < kernel_d_ * kernel_h_; ++k) {  // rows of taps
      const int z = at.z * stride_ - padding_d_ + k / kernel_h_ * dilation_;
      const int y = at.y * stride_ - padding_h_ + k % kernel_h_ * dilation_;
      if (z < 0 || z >= d_ || y < 0 || y >= h_) continue;
      for (int s = 0; s < kernel_w_; ++s) {
        const int column = at.x * stride_ - padding_w_ + s * dilation_;
        if (column >= 0 && column < w_) sum += w[k * kernel_w_ + s] * x[(z * h_ + y) * w_ + column];
      }
    }
    return sum;
  }

  /// Number i of wide.
  [[nodiscard]] KOKKOS_FUNCTION real sent(std::int64_t i, const real* small,
                                          const real* weights) const {
    const Pixel at(i, d_, h_, w_);
    const std::int64_t plane = at.plane * multiplier_;
    real sum = 0;
    for (int m = 0; m < multiplier_; ++m) {
      const real* const d = small + (plane + m) * pixels_of_small();
      const real* const w = weights + (plane + m) % channels_ * taps();
      for (int k = 0; k < kernel_d_ * kernel_h_; ++k) {
        const int oz = at.z + padding_d_ - k / kernel_h_ * dilation_;
        const int oy = at.y + padding_h_ - k % kernel_h_ * dilation_;
        if (!meets(oz, od_) || !meets(oy, oh_)) continue;
        const real* const row = d + (oz / stride_ * oh_ + oy / stride_) * ow_;
        for (int s = 0; s < kernel_w_; ++s) {
          const int ox = at.x + padding_w_ - s * dilation_;
          if (meets(ox, ow_)) sum += w[k * kernel_w_ + s] * row[ox / stride_];
        }
      }
    }
    return sum;
  }

  /// What a weight adds up, for one image.
  [[nodiscard]] KOKKOS_FUNCTION double common(int channel, int tap, int image, const real* wide,
                                              const real* small) const {
    const std::int64_t plane = std::int64_t{image} * channels_ + channel;
    const real* const x = wide + plane_of_wide(plane) * pixels_of_wide();
    const real* const d = small + plane * pixels_of_small();
    const int q = tap / kernel_w_ / kernel_h_ * dilation_ - padding_d_;
    const int r = tap / kernel_w_ % kernel_h_ * dilation_ - padding_h_;
    const int s = tap % kernel_w_ * dilation_ - padding_w_;
    double sum = 0;
    for (int o = 0; o < od_ * oh_; ++o) {  // rows of small
      const int z = o / oh_ * stride_ + q;
      const int y = o % oh_ * stride_ + r;
      if (z < 0 || z >= d_ || y < 0 || y >= h_) continue;
      real row = 0;
      for (int ox = 0; ox < ow_; ++ox) {
        const int column = ox * stride_ + s;
        if (column >= 0 && column < w_) row += x[(z * h_ + y) * w_ + column] * d[o * ow_ + ox];
      }
      sum += static_cast<double>(row);
    }
    return sum;
  }

  [[nodiscard]] KOKKOS_FUNCTION int channels() const { return channels_; }
  [[nodiscard]] KOKKOS_FUNCTION int taps() const { return kernel_d_ * kernel_h_ * kernel_w_; }
  /// Of a number of small.
  [[nodiscard]] KOKKOS_FUNCTION int channel_of(std::int64_t i) const {
    return static_cast<int>(i / pixels_of_small() % channels_);
  }
  /// Of a number of wide.
  [[nodiscard]] KOKKOS_FUNCTION int channel_of_wide(std::int64_t i) const {
    return static_cast<int>(i / pixels_of_wide() % (channels_ / multiplier_));
  }

 private:
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t plane_of_wide(std::int64_t plane) const {
    return plane / multiplier_;  // images have whole numbers of planes
  }

  [[nodiscard]] KOKKOS_FUNCTION std::int64_t pixels_of_wide() const {
    return std::int64_t{d_} * h_ * w_;
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t pixels_of_small() const {
    return std::int64_t{od_} * oh_ * ow_;
  }
  /// Whether there is one of `count` windows, stride pixels apart, at that pixel.
  [[nodiscard]] KOKKOS_FUNCTION bool meets(int pixel, int count) const {
    return pixel >= 0 && pixel % stride_ == 0 && pixel / stride_ < count;
  }

  int channels_, multiplier_, d_, h_, w_, od_, oh_, ow_, kernel_d_, kernel_h_, kernel_w_, stride_,
      padding_d_, padding_h_, padding_w_, dilation_;
};

bool is_depthwise(const WindowProducts& of) {
  return of.groups > 1 && of.groups == of.wide.channels;
}

}  // namespace

void look_through(const ExecutionSpace& exec, const std::string& label, const WindowProducts& of,
                  const ConstTensor& wide, const real* weights, const real* bias, real* small,
                  int before, bool adds) {
  const int pixels = pixels_of(of.small);
  if (is_depthwise(of)) {
    const Depthwise depthwise(of);
    return Kokkos::parallel_for(
        label, range(exec, wide.n * of.small.size()), KOKKOS_LAMBDA(std::int64_t i) {
          real sum = depthwise.seen(i, wide.data, weights);
          if (bias != nullptr) sum += bias[depthwise.channel_of(i)];
          small[i] = adds ? small[i] + sum : sum;
        });
  }
  const int in = of.wide.channels / of.groups;
  const int out = of.small.channels / of.groups;
  const std::int64_t plane = pixels + before;
  for (int g = 0; g < of.groups; ++g) {
    const GemmShape shape = {out, wide.n * pixels, of.taps()};
    const Vectors weight = {weights + std::int64_t{g} * out * of.taps(), of.taps(), 1};
    const detail::Windows windows = windows_of(wide, g * in, of.small, of.window);
    const Matrix y = {.data = small + g * out * plane + before,
                      .row_stride = plane,
                      .adds = adds,
                      .block = pixels,
                      .block_stride = of.small.channels * plane};
    if (bias != nullptr)
      gemm(exec, label, shape, weight, windows, y, AddToRows{bias + g * out});
    else
      gemm(exec, label, shape, weight, windows, y);
  }
}

void send_back(const ExecutionSpace& exec, const std::string& label, const WindowProducts& of,
               const ConstTensor& small, const real* weights, const real* bias, real* wide,
               bool adds) {
  if (is_depthwise(of)) {
    const Depthwise depthwise(of);
    return Kokkos::parallel_for(
        label, range(exec, small.n * of.wide.size()), KOKKOS_LAMBDA(std::int64_t i) {
          real sum = depthwise.sent(i, small.data, weights);
          if (bias != nullptr) sum += bias[depthwise.channel_of_wide(i)];
          wide[i] = adds ? wide[i] + sum : sum;
        });
  }
  const int pixels = pixels_of(of.wide);
  const int in = of.wide.channels / of.groups;
  const int out = of.small.channels / of.groups;
  const int window = of.window.taps();
  // With a stride, most taps meet the zeros between the outputs; networks have few such layers.
  for (int g = 0; g < of.groups; ++g) {
    const real* const first = weights + std::int64_t{g} * out * of.taps();
    const GemmShape shape = {in, small.n * pixels, out * window};
    const Vectors weight =
        window == 1 ? Vectors{first, 1, of.taps()} : Vectors{first, window, 1, window, of.taps()};
    const detail::Windows windows = transposed_windows(small, g * out, of.wide, of.window);
    const Matrix x = {.data = wide + std::int64_t{g} * in * pixels,
                      .row_stride = pixels,
                      .adds = adds,
                      .block = pixels,
                      .block_stride = of.wide.size()};
    if (bias != nullptr)
      gemm(exec, label, shape, weight, windows, x, AddToRows{bias + g * in});
    else
      gemm(exec, label, shape, weight, windows, x);
  }
}

void correlate(const ExecutionSpace& exec, const std::string& label, const WindowProducts& of,
               const ConstTensor& wide, const ConstTensor& small, int before, real* d_weights) {
  const int pixels = pixels_of(of.small);
  if (is_depthwise(of)) {
    const Depthwise depthwise(of);
    const int n = wide.n;
    return Kokkos::parallel_for(
        label, range(exec, std::int64_t{depthwise.channels()} * depthwise.taps()),
        KOKKOS_LAMBDA(std::int64_t i) {
          const auto channel = static_cast<int>(i / depthwise.taps());
          const auto tap = static_cast<int>(i % depthwise.taps());
          double sum = 0;
          for (int image = 0; image < n; ++image)
            sum += depthwise.common(channel, tap, image, wide.data, small.data);
          d_weights[i] = static_cast<real>(sum);
        });
  }
  const int in = of.wide.channels / of.groups;
  const int out = of.small.channels / of.groups;
  const std::int64_t plane = pixels + before;
  for (int g = 0; g < of.groups; ++g)
    gemm(
        exec, label, {out, of.taps(), wide.n * pixels},
        Vectors{small.data + g * out * plane + before, plane, 1, pixels, of.small.channels * plane},
        detail::WindowTaps{windows_of(wide, g * in, of.small, of.window)},
        {d_weights + std::int64_t{g} * out * of.taps(), of.taps()});
}

void sum_channels(const ExecutionSpace& exec, const std::string& label, const ConstTensor& d,
                  real* sums) {
  const real* data = d.data;
  const int n = d.n;
  const SampleShape shape = d.shape;
  Kokkos::parallel_for(
      label, detail::channel_teams(exec, shape.channels), KOKKOS_LAMBDA(const Team& team) {
        const int c = team.league_rank();
        const detail::TwoSums sum =
            detail::sum_channel(team, detail::ChannelPixels(n, shape, c), [&](std::int64_t i) {
              return detail::TwoSums{data[i], 0};
            });
        Kokkos::single(Kokkos::PerTeam(team), [&] { sums[c] = static_cast<real>(sum.first); });
      });
}

}  // namespace carousel
