// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/depthwise.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/model/workspace.hpp"
#include "layers/blocked/blocked.hpp"
#include "layers/blocked/direct_weights.hpp"
#include "layers/blocked/tasks.hpp"
#include "layers/convolution/op.hpp"
#include "layers/stored.hpp"

namespace carousel::blocked {
namespace {

/// Half-open.
struct Range {
  int begin;
  int end;
};

/// Windows along one axis: number o begins at o stride - padding of `size` pixels.
struct Axis {
  int size;
  int places;
  int kernel;
  int stride;
  int padding;
  int dilation;

  [[nodiscard]] int at(int o) const { return o * stride - padding; }
  /// Taps of window o that are in the image.
  [[nodiscard]] Range taps(int o) const {
    const int first = at(o);
    const int begin = first >= 0 ? 0 : (dilation - 1 - first) / dilation;
    const int end = first >= size ? 0 : std::min(kernel, (size - 1 - first) / dilation + 1);
    return {begin, std::max(begin, end)};
  }
  /// Windows between whose first and last tap pixel i is.
  [[nodiscard]] Range around(int i) const {
    const int behind = i + padding - dilation * (kernel - 1);
    return {behind <= 0 ? 0 : (behind + stride - 1) / stride,
            std::min(places, (i + padding) / stride + 1)};
  }
  /// The tap of such a window that meets pixel i; -1 where it is between two of them.
  [[nodiscard]] int tap(int i, int o) const {
    const int offset = i - at(o);
    if (dilation == 1) return offset;
    return offset % dilation == 0 ? offset / dilation : -1;
  }
  /// Windows whose tap t is in the image.
  [[nodiscard]] Range windows(int t) const {
    const int offset = t * dilation - padding;
    const int begin = offset >= 0 ? 0 : std::min(places, (stride - 1 - offset) / stride);
    const int room = size - 1 - offset;
    const int end = room < 0 ? 0 : std::min(places, room / stride + 1);
    return {begin, std::max(begin, end)};
  }
  /// Windows that are in the image with all their taps.
  [[nodiscard]] Range inner() const {
    const Range first = windows(0);
    const Range last = windows(kernel - 1);
    const int begin = std::max(first.begin, last.begin);
    return {begin, std::max(begin, std::min(first.end, last.end))};
  }
};

/// The windows of a plane.
struct Sliding {
  Axis rows;
  Axis columns;

  Sliding(const Window& window, const SampleShape& in, const SampleShape& out)
      : rows{in.height, out.height, window.kernel, window.stride, window.padding, window.dilation},
        columns{
            in.width,       out.width, window.columns(), window.stride, window.padding_columns(),
            window.dilation} {}

  [[nodiscard]] int taps() const { return rows.kernel * columns.kernel; }
  /// That of the gradient of what a stride of 1 reads: the other way round, with flipped weights.
  [[nodiscard]] Sliding back() const {
    Sliding other = *this;
    for (Axis Sliding::*axis : {&Sliding::rows, &Sliding::columns}) {
      Axis& turned = other.*axis;
      std::swap(turned.size, turned.places);
      turned.padding = turned.dilation * (turned.kernel - 1) - turned.padding;
    }
    return other;
  }
};

/// Of one block of channels: [taps][lanes].
struct TapWeights {
  Lanes of[most_depthwise_taps];

  template <class Stored>
  TapWeights(const Stored* weights, int block, int taps, bool flipped) {
    const Stored* first = weights + std::int64_t{block} * lanes * taps;
    for (int t = 0; t < taps; ++t) of[flipped ? taps - 1 - t : t] = gathered(first + t, taps);
  }
};

/// y = [y +] begin + the sums of all windows of a plane. K: of a square window, 0: any.
template <int K, class Stored>
void slide(const Sliding& sliding, const TapWeights& weights, const Lanes& begin, const Stored* x,
           Stored* y, bool adds) {
  const Axis& columns = sliding.columns;
  const int width = K > 0 ? K : columns.kernel;
  const std::int64_t step = std::int64_t{columns.dilation} * lanes;
  const Range inner = columns.inner();
  for (int oy = 0; oy < sliding.rows.places; ++oy) {
    const Range rows = sliding.rows.taps(oy);
    Stored* const to = y + std::int64_t{oy} * columns.places * lanes;
    const auto put = [&](int ox, const Range& taps) __attribute__((always_inline)) {
      Lanes sum = begin;
      for (int r = rows.begin; r < rows.end; ++r) {
        const std::int64_t row = sliding.rows.at(oy) + r * sliding.rows.dilation;
        const Stored* from = x + (row * columns.size + columns.at(ox)) * lanes;
        for (int s = taps.begin; s < taps.end; ++s)
          sum += load(from + s * step) * weights.of[r * width + s];
      }
      if (adds) sum += load(to + ox * lanes);
      store(to + ox * lanes, sum);
    };
    for (int ox = 0; ox < inner.begin; ++ox) put(ox, columns.taps(ox));
    for (int ox = inner.begin; ox < inner.end; ++ox) put(ox, {0, width});
    for (int ox = inner.end; ox < columns.places; ++ox) put(ox, columns.taps(ox));
  }
}

/// d_x = [d_x +] what the windows of each pixel hand back, in their order, where strides leave
/// pixels out.
template <class Stored>
void hand_back(const Sliding& sliding, const TapWeights& weights, const Stored* d_y, Stored* d_x,
               bool adds) {
  const Axis& columns = sliding.columns;
  for (int iy = 0; iy < sliding.rows.size; ++iy) {
    const Range rows = sliding.rows.around(iy);
    for (int ix = 0; ix < columns.size; ++ix, d_x += lanes) {
      const Range around = columns.around(ix);
      Lanes sum = adds ? load(d_x) : Lanes{};
      for (int oy = rows.begin; oy < rows.end; ++oy) {
        const int r = sliding.rows.tap(iy, oy);
        if (r < 0) continue;
        for (int ox = around.begin; ox < around.end; ++ox) {
          const int s = columns.tap(ix, ox);
          if (s < 0) continue;
          sum += load(d_y + (std::int64_t{oy} * columns.places + ox) * lanes) *
                 weights.of[r * columns.kernel + s];
        }
      }
      store(d_x, sum);
    }
  }
}

void add_to(Wide& sum, const Lanes& part) {
  sum += __builtin_convertvector(part, Wide);
}

/// sums[tap] += the products of a row of gradients with what the tap meets.
template <class Stored>
void add_row(const Sliding& sliding, int oy, const Range& rows, const Stored* x, const Stored* d_y,
             Wide* sums) {
  const Axis& columns = sliding.columns;
  for (int r = rows.begin; r < rows.end; ++r) {
    const std::int64_t row = sliding.rows.at(oy) + r * sliding.rows.dilation;
    for (int s = 0; s < columns.kernel; ++s) {
      const Range windows = columns.windows(s);
      const Stored* from =
          x + (row * columns.size + s * columns.dilation - columns.padding) * lanes;
      Lanes sum = {};
      for (int ox = windows.begin; ox < windows.end; ++ox)
        sum += load(from + std::int64_t{ox} * columns.stride * lanes) *
               load(d_y + std::int64_t{ox} * lanes);
      add_to(sums[r * columns.kernel + s], sum);
    }
  }
}

/// The same of all taps at once, which registers hold, for windows that are in the image.
template <int K, class Stored>
void add_inner_row(const Sliding& sliding, int oy, const Stored* x, const Stored* d_y, Wide* sums) {
  const Axis& columns = sliding.columns;
  const Range inner = columns.inner();
  const std::int64_t step = std::int64_t{columns.dilation} * lanes;
  const std::int64_t next_row = std::int64_t{sliding.rows.dilation} * columns.size * lanes;
  Lanes all[K * K] = {};
  for (int ox = inner.begin; ox < inner.end; ++ox) {
    const Lanes d = load(d_y + std::int64_t{ox} * lanes);
    const Stored* from =
        x + (std::int64_t{sliding.rows.at(oy)} * columns.size + columns.at(ox)) * lanes;
    CAROUSEL_UNROLL_ALL
    for (int k = 0; k < K * K; ++k) all[k] += load(from + k / K * next_row + k % K * step) * d;
  }
  for (int k = 0; k < K * K; ++k) add_to(sums[k], all[k]);
  const auto add_edge = [&](int ox) {
    const Range taps = columns.taps(ox);
    const Lanes d = load(d_y + std::int64_t{ox} * lanes);
    for (int r = 0; r < K; ++r) {
      const std::int64_t row = sliding.rows.at(oy) + r * sliding.rows.dilation;
      for (int s = taps.begin; s < taps.end; ++s)
        add_to(sums[r * K + s],
               load(x + (row * columns.size + columns.at(ox)) * lanes + s * step) * d);
    }
  };
  for (int ox = 0; ox < inner.begin; ++ox) add_edge(ox);
  for (int ox = inner.end; ox < columns.places; ++ox) add_edge(ox);
}

template <int K, class Stored>
void add_plane(const Sliding& sliding, const Stored* x, const Stored* d_y, Wide* sums) {
  for (int oy = 0; oy < sliding.rows.places; ++oy) {
    const Range rows = sliding.rows.taps(oy);
    const Stored* row = d_y + std::int64_t{oy} * sliding.columns.places * lanes;
    if constexpr (K > 0) {
      if (rows.begin == 0 && rows.end == K) {
        add_inner_row<K>(sliding, oy, x, row, sums);
        continue;
      }
    }
    add_row(sliding, oy, rows, x, row, sums);
  }
}

/// Calls run.operator()<K>() with the side of a square window that there are kernels of its own
/// for, or 0.
template <class Run>
void with_side(const Sliding& sliding, const Run& run) {
  const int side = sliding.rows.kernel == sliding.columns.kernel ? sliding.rows.kernel : 0;
  if (side == 3) return run.template operator()<3>();
  if (side == 5 && registers > 25) return run.template operator()<5>();
  run.template operator()<0>();
}

}  // namespace

DepthwiseConvolution::DepthwiseConvolution(const LayerSpec& spec, const Engine& engine)
    : in_(spec.input()),
      out_(spec.output),
      type_(spec.output_format.type),
      window_(spec.as<op::Convolution>().window),
      has_bias_(spec.parameters.size() > 1),
      learns_(!spec.is_frozen()),
      bias_(behind_weights(spec)),
      workspace_(engine.workspace) {
  CAROUSEL_CHECK(in_.channels == out_.channels && in_.channels % lanes == 0 &&
                     spec.as<op::Convolution>().groups == in_.channels &&
                     window_.taps() <= most_depthwise_taps,
                 "{} is no depthwise convolution in blocks of {}", spec.label(), lanes);
}

template <class Stored>
void DepthwiseConvolution::convolve(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::depthwise_forward";
  const Sliding sliding(window_, in_, out_);
  const Planes<const Stored> x(arguments.input);
  const Planes<Stored> y(arguments.output);
  const auto* weights = reinterpret_cast<const Stored*>(arguments.parameters);
  const real* bias = has_bias_ ? arguments.parameters + bias_ : nullptr;
  for_each_task(exec, label, x.images * x.blocks, [=](int task) {
    const int block = task % x.blocks;
    const TapWeights taps(weights, block, sliding.taps(), false);
    const Lanes begin = bias == nullptr ? Lanes{} : load(bias + std::int64_t{block} * lanes);
    with_side(sliding, [&]<int K>() {
      slide<K>(sliding, taps, begin, x.plane(task / x.blocks, block),
               y.plane(task / x.blocks, block), false);
    });
  });
}

template <class Stored>
void DepthwiseConvolution::weight_gradient(const ExecutionSpace& exec,
                                           const BackwardArguments& arguments) {
  static const std::string sum_label = "carousel::layers::depthwise_backward_sums";
  static const std::string weight_label = "carousel::layers::depthwise_backward_weight";
  static const std::string bias_label = "carousel::layers::depthwise_backward_bias";
  const Sliding sliding(window_, in_, out_);
  const int taps = sliding.taps();
  const Planes<const Stored> x(arguments.input);
  const Planes<const Stored> d_y(arguments.d_output);
  auto* const partial = reinterpret_cast<double*>(workspace_.data());
  real* const d_weights = arguments.d_parameters;
  for_each_task(exec, sum_label, x.images * x.blocks, [=](int task) {
    Wide sums[most_depthwise_taps] = {};
    with_side(sliding, [&]<int K>() {
      add_plane<K>(sliding, x.plane(task / x.blocks, task % x.blocks),
                   d_y.plane(task / x.blocks, task % x.blocks), sums);
    });
    double* const to = partial + std::int64_t{task} * taps * lanes;
    for (int t = 0; t < taps; ++t)
      for (int l = 0; l < lanes; ++l) to[t * lanes + l] = sums[t][l];
  });
  for_each_task(exec, weight_label, x.blocks, [=](int block) {
    for (int t = 0; t < taps; ++t) {
      double sums[lanes] = {};
      for (int image = 0; image < x.images; ++image) {
        const double* from =
            partial + ((std::int64_t{image} * x.blocks + block) * taps + t) * lanes;
        for (int l = 0; l < lanes; ++l) sums[l] += from[l];
      }
      for (int l = 0; l < lanes; ++l)
        d_weights[(std::int64_t{block} * lanes + l) * taps + t] = static_cast<real>(sums[l]);
    }
  });
  if (has_bias_)
    bias_gradient(exec, bias_label, d_y, d_weights + std::int64_t{in_.channels} * taps);
}

template <class Stored>
void DepthwiseConvolution::input_gradient(const ExecutionSpace& exec,
                                          const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::depthwise_backward_input";
  const Sliding sliding(window_, in_, out_);
  const int taps = sliding.taps();
  const Planes<const Stored> d_y(arguments.d_output);
  const Planes<Stored> d_x(arguments.d_input);
  const bool adds = arguments.adds_input;
  const auto* const weights = reinterpret_cast<const Stored*>(arguments.parameters);
  for_each_task(exec, label, d_x.images * d_x.blocks, [=](int task) {
    const int image = task / d_x.blocks;
    const int block = task % d_x.blocks;
    Stored* const to = d_x.plane(image, block);
    if (sliding.rows.stride == 1) {
      const TapWeights flipped(weights, block, taps, true);
      with_side(sliding, [&]<int K>() {
        slide<K>(sliding.back(), flipped, Lanes{}, d_y.plane(image, block), to, adds);
      });
      return;
    }
    hand_back(sliding, TapWeights(weights, block, taps, false), d_y.plane(image, block), to, adds);
  });
}

void DepthwiseConvolution::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  with_stored(type_, [&]<class Stored>() { convolve<Stored>(exec, arguments); });
}

void DepthwiseConvolution::backward(const ExecutionSpace& exec,
                                    const BackwardArguments& arguments) {
  with_stored(type_, [&]<class Stored>() {
    if (learns_) weight_gradient<Stored>(exec, arguments);
    if (arguments.d_input.data != nullptr) input_gradient<Stored>(exec, arguments);
  });
}

std::unique_ptr<Layer> depthwise(const LayerSpec& spec, const Engine& engine) {
  return std::make_unique<DepthwiseConvolution>(spec, engine);
}

}  // namespace carousel::blocked
