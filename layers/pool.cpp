// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/pool.hpp"

#include "core/base/check.hpp"
#include "core/base/range.hpp"
#include "layers/average_pool/op.hpp"
#include "layers/max_pool/op.hpp"

namespace carousel {
namespace {

/// Half-open interval of rows, or of columns.
struct Interval {
  int begin;
  int end;
};

/// A pixel of one channel of one image, which is plane number `plane` of a tensor.
struct Pixel {
  std::int64_t plane;
  int y;
  int x;

  /// Number i of the pixels of all planes of [h, w].
  KOKKOS_FUNCTION Pixel(std::int64_t i, int h, int w)
      : plane(i / w / h), y(static_cast<int>(i / w % h)), x(static_cast<int>(i % w)) {}
};

/// The planes of a pooling: input [h, w] and output [oh, ow] of one channel of one image.
struct Planes {
  int h, w, oh, ow;
  int kernel_h, kernel_w, stride, padding, padding_w;

  Planes(const SampleShape& input, const SampleShape& output, const Window& window)
      : h(input.height),
        w(input.width),
        oh(output.height),
        ow(output.width),
        kernel_h(window.kernel > 0 ? window.kernel : h),
        kernel_w(window.kernel > 0 ? window.columns() : w),
        stride(window.stride),
        padding(window.padding),
        padding_w(window.padding_columns()) {}

  /// Input rows or columns of window o, within the image.
  [[nodiscard]] KOKKOS_FUNCTION Interval rows(int o) const {
    return pixels(o, kernel_h, padding, h);
  }
  [[nodiscard]] KOKKOS_FUNCTION Interval columns(int o) const {
    return pixels(o, kernel_w, padding_w, w);
  }
  /// Calls visit(oy, ox) for all windows in which input pixel (y, x) lies.
  template <class Visit>
  KOKKOS_FUNCTION void for_each_window(int y, int x, const Visit& visit) const {
    const Interval rows = windows(y, kernel_h, padding, oh);
    const Interval columns = windows(x, kernel_w, padding_w, ow);
    for (int oy = rows.begin; oy < rows.end; ++oy) {
      for (int ox = columns.begin; ox < columns.end; ++ox) visit(oy, ox);
    }
  }

  /// Where the largest pixel of a window is, in its plane.
  [[nodiscard]] KOKKOS_FUNCTION int largest(const real* x, int oy, int ox) const {
    const Interval rows = this->rows(oy);
    const Interval columns = this->columns(ox);
    int best = rows.begin * w + columns.begin;
    for (int y = rows.begin; y < rows.end; ++y) {
      for (int at = y * w + columns.begin; at < y * w + columns.end; ++at) {
        if (x[at] > x[best] || (Kokkos::isnan(x[at]) && !Kokkos::isnan(x[best]))) best = at;
      }
    }
    return best;
  }

 private:
  [[nodiscard]] KOKKOS_FUNCTION Interval pixels(int o, int kernel, int before, int size) const {
    const int first = o * stride - before;
    return {Kokkos::max(first, 0), Kokkos::min(first + kernel, size)};
  }
  /// Windows in which input row or column i lies.
  [[nodiscard]] KOKKOS_FUNCTION Interval windows(int i, int kernel, int before, int count) const {
    const int reach = i + before - kernel;  // the last window that ends before i starts there
    return {reach < 0 ? 0 : reach / stride + 1, Kokkos::min((i + before) / stride + 1, count)};
  }
};

}  // namespace

MaxPool::MaxPool(const LayerSpec& spec) : window_(spec.as<op::MaxPool>().window) {
  CAROUSEL_CHECK(window_.kernel >= 1 && 2 * window_.padding <= window_.kernel,
                 "pooling {} has windows of nothing but padding", spec.name);
}

void MaxPool::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::max_pool_forward";
  const Planes planes(arguments.input.shape, arguments.output.shape, window_);
  const real* x = arguments.input.data;
  real* y = arguments.output.data;
  Kokkos::parallel_for(
      label, range(exec, arguments.output.size()), KOKKOS_LAMBDA(std::int64_t i) {
        const Pixel at(i, planes.oh, planes.ow);
        const real* pixels = x + at.plane * planes.h * planes.w;
        y[i] = pixels[planes.largest(pixels, at.y, at.x)];
      });
}

void MaxPool::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::max_pool_backward";
  if (arguments.d_input.data == nullptr) return;
  const Planes planes(arguments.input.shape, arguments.output.shape, window_);
  const real* x = arguments.input.data;
  const real* d_y = arguments.d_output.data;
  real* d_x = arguments.d_input.data;
  const bool adds = arguments.adds_input;
  Kokkos::parallel_for(
      label, range(exec, arguments.input.size()), KOKKOS_LAMBDA(std::int64_t i) {
        const Pixel at(i, planes.h, planes.w);
        const real* pixels = x + at.plane * planes.h * planes.w;
        const real* d = d_y + at.plane * planes.oh * planes.ow;
        real sum = adds ? d_x[i] : 0;
        planes.for_each_window(at.y, at.x, [&](int oy, int ox) {
          const bool wins = planes.largest(pixels, oy, ox) == at.y * planes.w + at.x;
          if (wins) sum += d[oy * planes.ow + ox];
        });
        d_x[i] = sum;
      });
}

AveragePool::AveragePool(const LayerSpec& spec) : window_(spec.as<op::AveragePool>().window) {}

void AveragePool::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::average_pool_forward";
  const Planes planes(arguments.input.shape, arguments.output.shape, window_);
  const real* x = arguments.input.data;
  real* y = arguments.output.data;
  Kokkos::parallel_for(
      label, range(exec, arguments.output.size()), KOKKOS_LAMBDA(std::int64_t i) {
        const Pixel at(i, planes.oh, planes.ow);
        const real* pixels = x + at.plane * planes.h * planes.w;
        const Interval rows = planes.rows(at.y);
        const Interval columns = planes.columns(at.x);
        real sum = 0;
        for (int r = rows.begin; r < rows.end; ++r) {
          for (int c = columns.begin; c < columns.end; ++c) sum += pixels[r * planes.w + c];
        }
        y[i] = sum / (planes.kernel_h * planes.kernel_w);
      });
}

void AveragePool::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::average_pool_backward";
  if (arguments.d_input.data == nullptr) return;
  const Planes planes(arguments.input.shape, arguments.output.shape, window_);
  const real* d_y = arguments.d_output.data;
  real* d_x = arguments.d_input.data;
  const bool adds = arguments.adds_input;
  Kokkos::parallel_for(
      label, range(exec, arguments.input.size()), KOKKOS_LAMBDA(std::int64_t i) {
        const Pixel at(i, planes.h, planes.w);
        const real* d = d_y + at.plane * planes.oh * planes.ow;
        real sum = 0;
        planes.for_each_window(at.y, at.x, [&](int oy, int ox) { sum += d[oy * planes.ow + ox]; });
        sum /= planes.kernel_h * planes.kernel_w;
        d_x[i] = adds ? d_x[i] + sum : sum;
      });
}

}  // namespace carousel
