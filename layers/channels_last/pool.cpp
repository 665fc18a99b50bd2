// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/channels_last/pool.hpp"

#include "layers/average_pool/op.hpp"
#include "layers/channels_last/rows.hpp"
#include "layers/max_pool/op.hpp"

namespace carousel::channels_last {
namespace {

/// The windows of a pooling of [h, w] to [oh, ow].
struct Pooling {
  Window window;
  int h, w, oh, ow, channels;

  Pooling(const Window& shape, const SampleShape& input, const SampleShape& output)
      : window(shape),
        h(input.height),
        w(input.width),
        oh(output.height),
        ow(output.width),
        channels(input.channels) {}

  /// First tap of window o that is in the image, and the one behind the last.
  [[nodiscard]] KOKKOS_FUNCTION int begin(int o) const {
    return Kokkos::max(0, window.padding - o * window.stride);
  }
  [[nodiscard]] KOKKOS_FUNCTION int end(int o, int size) const {
    return Kokkos::min(window.kernel, size + window.padding - o * window.stride);
  }
  [[nodiscard]] KOKKOS_FUNCTION int pixel(int o, int tap) const {
    return o * window.stride + tap - window.padding;
  }
  /// First window that has pixel i, and the one behind the last of `count`.
  [[nodiscard]] KOKKOS_FUNCTION int first_window(int i) const {
    const int reach = i + window.padding - window.kernel;
    return reach < 0 ? 0 : reach / window.stride + 1;
  }
  [[nodiscard]] KOKKOS_FUNCTION int end_window(int i, int count) const {
    return Kokkos::min((i + window.padding) / window.stride + 1, count);
  }
  /// The number of a channel at a pixel of the input, or of the output.
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t input_at(std::int64_t image, int y, int x,
                                                      int c) const {
    return ((image * h + y) * w + x) * channels + c;
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t output_at(std::int64_t image, int y, int x,
                                                       int c) const {
    return ((image * oh + y) * ow + x) * channels + c;
  }
};

/// Where number i of images of [h, w, channels] is.
struct Place {
  std::int64_t image;
  int y;
  int x;

  KOKKOS_FUNCTION Place(std::int64_t i, int h, int w, int channels)
      : image(i / channels / w / h),
        y(static_cast<int>(i / channels / w % h)),
        x(static_cast<int>(i / channels % w)) {}
};
template <class Stored>
struct Largest {
  Pooling pooling;
  Rows<const Stored> x;
  Rows<Stored> y;
  std::int8_t* indices;

  template <int Width>
  KOKKOS_FUNCTION void visit(int c, std::int64_t first, std::int64_t step, std::int64_t end) const {
    for (std::int64_t i = first; i < end; i += step) {
      const Place at(i, pooling.oh, pooling.ow, pooling.channels);
      Pack<real, Width> best = {};
      Pack<std::int8_t, Width> places;
      for (int l = 0; l < Width; ++l) places.at[l] = -1;
      for (int r = pooling.begin(at.y); r < pooling.end(at.y, pooling.h); ++r) {
        for (int s = pooling.begin(at.x); s < pooling.end(at.x, pooling.w); ++s) {
          const auto values =
              read_pack<Width>(x.data + pooling.input_at(at.image, pooling.pixel(at.y, r),
                                                         pooling.pixel(at.x, s), c));
          for (int l = 0; l < Width; ++l) {
            const real value = full(values.at[l]);
            // Not a number is larger than all numbers, as in PyTorch.
            if (places.at[l] >= 0 && !(value > best.at[l]) &&
                (!Kokkos::isnan(value) || Kokkos::isnan(best.at[l])))
              continue;
            best.at[l] = value;
            places.at[l] = static_cast<std::int8_t>(r * pooling.window.kernel + s);
          }
        }
      }
      Pack<Stored, Width> to;
      for (int l = 0; l < Width; ++l) put(to.at[l], best.at[l]);
      write_pack(y.data + i, to);
      write_pack(indices + i, places);
    }
  }
};

/// d_x = or += what the windows that a pixel won hand back.
template <class Stored>
struct HandBack {
  Pooling pooling;
  Rows<const Stored> d_y;
  const std::int8_t* indices;
  Rows<Stored> d_x;
  bool adds;

  template <int Width>
  KOKKOS_FUNCTION void visit(int c, std::int64_t first, std::int64_t step, std::int64_t end) const {
    for (std::int64_t i = first; i < end; i += step) {
      const Place at(i, pooling.h, pooling.w, pooling.channels);
      auto to = adds ? read_pack<Width>(d_x.data + i) : Pack<Stored, Width>{};
      Pack<real, Width> sums;
      for (int l = 0; l < Width; ++l) sums.at[l] = full(to.at[l]);
      for (int oy = pooling.first_window(at.y); oy < pooling.end_window(at.y, pooling.oh); ++oy) {
        for (int ox = pooling.first_window(at.x); ox < pooling.end_window(at.x, pooling.ow); ++ox) {
          const std::int64_t o = pooling.output_at(at.image, oy, ox, c);
          const int tap =
              (at.y - pooling.pixel(oy, 0)) * pooling.window.kernel + at.x - pooling.pixel(ox, 0);
          const auto gradients = read_pack<Width>(d_y.data + o);
          const auto places = read_pack<Width>(indices + o);
          for (int l = 0; l < Width; ++l)
            if (places.at[l] == tap) sums.at[l] += full(gradients.at[l]);
        }
      }
      for (int l = 0; l < Width; ++l) put(to.at[l], sums.at[l]);
      write_pack(d_x.data + i, to);
    }
  }
};

template <class From, class To>
void average(const ExecutionSpace& exec, const Rows<const From>& x, int pixels, const Rows<To>& y) {
  static const std::string label = "carousel::layers::average_pool_forward";
  for_each_number(
      exec, label, y.size(), y.channels, KOKKOS_LAMBDA(int c, std::int64_t i) {
        const From* const image = x.data + i / x.channels * pixels * x.channels + c;
        real sum = 0;
        for (int p = 0; p < pixels; ++p)
          sum += full(image[static_cast<std::int64_t>(p) * x.channels]);
        put(y.data[i], sum / static_cast<real>(pixels));
      });
}

template <class From, class To>
void spread(const ExecutionSpace& exec, const Rows<const To>& d_y, int pixels,
            const Rows<From>& d_x, bool adds) {
  static const std::string label = "carousel::layers::average_pool_backward";
  for_each_number(
      exec, label, d_x.size(), d_x.channels, KOKKOS_LAMBDA(int c, std::int64_t i) {
        const std::int64_t image = i / d_x.channels / pixels;
        const real d = full(d_y.data[image * d_x.channels + c]) / static_cast<real>(pixels);
        put(d_x.data[i], adds ? full(d_x.data[i]) + d : d);
      });
}

int pixels_of(const SampleShape& shape) {
  return static_cast<int>(shape.pixels());
}

}  // namespace

MaxPool::MaxPool(const LayerSpec& spec, int samples)
    : type_(spec.output_format.type),
      window_(spec.as<op::MaxPool>().window),
      indices_(spec.saved_offset(0, samples)) {
  CAROUSEL_CHECK(window_.kernel >= 1 && 2 * window_.padding <= window_.kernel &&
                     window_.kernel <= 11 && !spec.as<op::MaxPool>().normalises,
                 "pooling {} has windows of {} with a padding of {}", spec.name, window_.kernel,
                 window_.padding);
  CAROUSEL_CHECK(spec.inputs[0].format.type == type_, "{}: {} becomes {}", spec.label(),
                 to_string(spec.inputs[0].format), to_string(spec.output_format));
}

void MaxPool::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::max_pool_forward";
  const Pooling pooling(window_, arguments.input.shape, arguments.output.shape);
  with_stored(type_, [&]<class Stored>() {
    const Rows<Stored> y(arguments.output);
    for_each_pack(exec, label, y.size(), y.channels,
                  Largest<Stored>{pooling, Rows<const Stored>(arguments.input), y,
                                  reinterpret_cast<std::int8_t*>(arguments.saved + indices_)});
  });
}

void MaxPool::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::max_pool_backward";
  if (arguments.d_input.data == nullptr) return;
  const Pooling pooling(window_, arguments.d_input.shape, arguments.d_output.shape);
  with_stored(type_, [&]<class Stored>() {
    const Rows<Stored> d_x(arguments.d_input);
    for_each_pack(exec, label, d_x.size(), d_x.channels,
                  HandBack<Stored>{pooling, Rows<const Stored>(arguments.d_output),
                                   reinterpret_cast<const std::int8_t*>(arguments.saved + indices_),
                                   d_x, arguments.adds_input});
  });
}

AveragePool::AveragePool(const LayerSpec& spec)
    : from_(spec.inputs[0].format.type), to_(spec.output_format.type) {
  CAROUSEL_CHECK(spec.as<op::AveragePool>().window.kernel == 0,
                 "average pooling {} is not one of whole images", spec.name);
}

void AveragePool::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  with_stored(from_, [&]<class From>() {
    with_stored(to_, [&]<class To>() {
      average(exec, Rows<const From>(arguments.input), pixels_of(arguments.input.shape),
              Rows<To>(arguments.output));
    });
  });
}

void AveragePool::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  if (arguments.d_input.data == nullptr) return;
  with_stored(from_, [&]<class From>() {
    with_stored(to_, [&]<class To>() {
      spread(exec, Rows<const To>(arguments.d_output), pixels_of(arguments.d_input.shape),
             Rows<From>(arguments.d_input), arguments.adds_input);
    });
  });
}

}  // namespace carousel::channels_last
