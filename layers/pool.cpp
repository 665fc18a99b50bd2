// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/pool.hpp"

#include "core/base/check.hpp"
#include "core/base/range.hpp"
#include "layers/average_pool/op.hpp"
#include "layers/max_pool/op.hpp"
#include "layers/pixel.hpp"

namespace carousel {
namespace {

/// Half-open interval of slices, rows or columns.
struct Interval {
  int begin;
  int end;
};

/// The windows of a pooling along an axis.
struct PoolAxis {
  int size;   // of the input
  int count;  // of windows
  int kernel;
  int stride;
  int padding;

  /// What window o has of the input.
  [[nodiscard]] KOKKOS_FUNCTION Interval pixels(int o) const {
    const int first = o * stride - padding;
    return {Kokkos::max(first, 0), Kokkos::min(first + kernel, size)};
  }
  /// The windows that have i of the input.
  [[nodiscard]] KOKKOS_FUNCTION Interval windows(int i) const {
    const int reach = i + padding - kernel;  // the last window that ends before i starts there
    return {reach < 0 ? 0 : reach / stride + 1, Kokkos::min((i + padding) / stride + 1, count)};
  }
};

/// The planes of a pooling: those of one channel of one image.
struct Planes {
  PoolAxis slices;
  PoolAxis rows;
  PoolAxis columns;

  /// A window of kernel 0 is the whole image.
  Planes(const SampleShape& input, const SampleShape& output, const Window& window)
      : slices{input.depth, output.depth, window.slices(), window.stride, window.padding_slices()},
        rows{input.height, output.height, window.kernel, window.stride, window.padding},
        columns{input.width, output.width, window.columns(), window.stride,
                window.padding_columns()} {
    if (window.kernel > 0) return;
    for (PoolAxis* axis : {&slices, &rows, &columns}) axis->kernel = axis->size;
  }

  /// Numbers of a plane of the input, and of the output.
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t inputs() const {
    return std::int64_t{slices.size} * rows.size * columns.size;
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t outputs() const {
    return std::int64_t{slices.count} * rows.count * columns.count;
  }
  [[nodiscard]] KOKKOS_FUNCTION int taps() const {
    return slices.kernel * rows.kernel * columns.kernel;
  }
  /// Number i of the input, and of the output.
  [[nodiscard]] KOKKOS_FUNCTION Pixel input_at(std::int64_t i) const {
    return {i, slices.size, rows.size, columns.size};
  }
  [[nodiscard]] KOKKOS_FUNCTION Pixel output_at(std::int64_t i) const {
    return {i, slices.count, rows.count, columns.count};
  }
  /// Calls visit(i) for the pixels of a window, which are numbers i of the input's plane.
  template <class Visit>
  KOKKOS_FUNCTION void for_each_pixel(const Pixel& window, const Visit& visit) const {
    for_each(slices.pixels(window.z), rows.pixels(window.y), columns.pixels(window.x), rows.size,
             columns.size, visit);
  }
  /// Calls visit(o) for all windows that a pixel lies in, which are numbers o of the output's
  /// plane.
  template <class Visit>
  KOKKOS_FUNCTION void for_each_window(const Pixel& pixel, const Visit& visit) const {
    for_each(slices.windows(pixel.z), rows.windows(pixel.y), columns.windows(pixel.x), rows.count,
             columns.count, visit);
  }

  /// Where the largest pixel of a window is, in its plane.
  [[nodiscard]] KOKKOS_FUNCTION int largest(const real* x, const Pixel& window) const {
    int best = -1;
    for_each_pixel(window, [&](int at) {
      if (best < 0 || x[at] > x[best] || (Kokkos::isnan(x[at]) && !Kokkos::isnan(x[best])))
        best = at;
    });
    return best;
  }

 private:
  /// Calls visit(number) for a part of a plane whose slices are [h, w].
  template <class Visit>
  KOKKOS_FUNCTION static void for_each(const Interval& behind, const Interval& down,
                                       const Interval& across, int h, int w, const Visit& visit) {
    for (int z = behind.begin; z < behind.end; ++z) {
      for (int y = down.begin; y < down.end; ++y) {
        const int row = (z * h + y) * w;
        for (int x = across.begin; x < across.end; ++x) visit(row + x);
      }
    }
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
        const Pixel window = planes.output_at(i);
        const real* pixels = x + window.plane * planes.inputs();
        y[i] = pixels[planes.largest(pixels, window)];
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
        const Pixel at = planes.input_at(i);
        const real* pixels = x + at.plane * planes.inputs();
        const real* d = d_y + at.plane * planes.outputs();
        const auto own = static_cast<int>(i % planes.inputs());
        real sum = adds ? d_x[i] : 0;
        planes.for_each_window(at, [&](int o) {
          if (planes.largest(pixels, planes.output_at(o)) == own) sum += d[o];
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
        const Pixel window = planes.output_at(i);
        const real* pixels = x + window.plane * planes.inputs();
        real sum = 0;
        planes.for_each_pixel(window, [&](int at) { sum += pixels[at]; });
        y[i] = sum / planes.taps();
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
        const Pixel at = planes.input_at(i);
        const real* d = d_y + at.plane * planes.outputs();
        real sum = 0;
        planes.for_each_window(at, [&](int o) { sum += d[o]; });
        sum /= planes.taps();
        d_x[i] = adds ? d_x[i] + sum : sum;
      });
}

}  // namespace carousel
