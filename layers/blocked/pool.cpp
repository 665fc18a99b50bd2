// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/pool.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "layers/average_pool/op.hpp"
#include "layers/blocked/blocked.hpp"
#include "layers/blocked/norm_kernels.hpp"
#include "layers/blocked/tasks.hpp"
#include "layers/max_pool/op.hpp"
#include "layers/stored.hpp"

namespace carousel::blocked {
namespace {

/// A whole number beside every number of a register, and such numbers as bytes.
using Whole = decltype(Lanes{} < Lanes{});
using Octets = std::int8_t __attribute__((vector_size(lanes), aligned(1), may_alias));

/// The windows of a pooling along an axis.
struct PoolAxis {
  int kernel;
  int stride;
  int padding;

  /// First tap of window o that is in the image.
  [[nodiscard]] int begin(int o) const { return std::max(0, padding - o * stride); }
  [[nodiscard]] int end(int o, int size) const {
    return std::min(kernel, size + padding - o * stride);
  }
  [[nodiscard]] int pixel(int o, int tap) const { return o * stride + tap - padding; }
  /// First window that has pixel i, and the one behind the last of `count`.
  [[nodiscard]] int first_window(int i) const {
    const int reach = i + padding - kernel;
    return reach < 0 ? 0 : reach / stride + 1;
  }
  [[nodiscard]] int end_window(int i, int count) const {
    return std::min((i + padding) / stride + 1, count);
  }
};

/// Along slices, and along rows as well as columns.
struct Pooling {
  PoolAxis slices;
  PoolAxis rows;

  explicit Pooling(const Window& window)
      : slices{window.slices(), window.stride, window.padding_slices()},
        rows{window.kernel, window.stride, window.padding} {}

  /// The number of a tap.
  [[nodiscard]] int tap(int q, int r, int s) const {
    return (q * rows.kernel + r) * rows.kernel + s;
  }
};

/// A slice of a block of channels of an image, number `task` of a tensor.
template <class Real>
struct Slice {
  int image;
  int block;
  int z;

  Slice(const Planes<Real>& planes, int task)
      : image(task / planes.d / planes.blocks),
        block(task / planes.d % planes.blocks),
        z(task % planes.d) {}
};

template <class Source, class Stored>
void find_largest(const ExecutionSpace& exec, const Pooling& pooling, const Planes<const Stored>& x,
                  const Source& source, const Planes<Stored>& y, std::int8_t* indices) {
  static const std::string label = "carousel::layers::max_pool_forward";
  for_each_task(exec, label, y.images * y.blocks * y.d, [=](int task) {
    const auto [image, block, oz] = Slice(y, task);
    Stored* to = y.pixel(image, block, oz, 0, 0);
    std::int8_t* index = indices + (to - y.data);
    const PoolAxis& rows = pooling.rows;
    for (int oy = 0; oy < y.h; ++oy) {
      for (int ox = 0; ox < y.w; ++ox, to += lanes, index += lanes) {
        Lanes best = {};
        Whole place = {};
        bool is_first = true;
        for (int q = pooling.slices.begin(oz); q < pooling.slices.end(oz, x.d); ++q) {
          for (int r = rows.begin(oy); r < rows.end(oy, x.h); ++r) {
            for (int s = rows.begin(ox); s < rows.end(ox, x.w); ++s) {
              const Stored* from = x.pixel(image, block, pooling.slices.pixel(oz, q),
                                           rows.pixel(oy, r), rows.pixel(ox, s));
              const Lanes value = made_of(source, from, block);
              // Not a number is larger than all numbers, as in PyTorch.
              // NOLINTNEXTLINE(misc-redundant-expression)
              Whole wins = (value > best) | ((value != value) & (best == best));
              if (is_first) wins = Whole{} == Whole{};
              best = wins ? value : best;
              place = wins ? Whole{} + pooling.tap(q, r, s) : place;
              is_first = false;
            }
          }
        }
        store(to, best);
        *reinterpret_cast<Octets*>(index) = __builtin_convertvector(place, Octets);
      }
    }
  });
}

/// d_x = or += what the windows that a pixel won hand back; where the output is not above zero,
/// nothing if it was rectified.
template <bool Rectified, class Stored>
void hand_back(const ExecutionSpace& exec, const Pooling& pooling, const Planes<const Stored>& y,
               const Planes<const Stored>& d_y, const std::int8_t* indices,
               const Planes<Stored>& d_x, bool adds) {
  static const std::string label = "carousel::layers::max_pool_backward";
  for_each_task(exec, label, d_x.images * d_x.blocks * d_x.d, [=](int task) {
    const auto [image, block, iz] = Slice(d_x, task);
    Stored* to = d_x.pixel(image, block, iz, 0, 0);
    const PoolAxis& slices = pooling.slices;
    const PoolAxis& rows = pooling.rows;
    const int behind = slices.end_window(iz, y.d);
    for (int iy = 0; iy < d_x.h; ++iy) {
      for (int ix = 0; ix < d_x.w; ++ix, to += lanes) {
        Lanes sum = adds ? load(to) : Lanes{};
        for (int oz = slices.first_window(iz); oz < behind; ++oz) {
          for (int oy = rows.first_window(iy); oy < rows.end_window(iy, y.h); ++oy) {
            for (int ox = rows.first_window(ix); ox < rows.end_window(ix, y.w); ++ox) {
              const std::int64_t o = y.pixel(image, block, oz, oy, ox) - y.data;
              const int tap = pooling.tap(iz - slices.pixel(oz, 0), iy - rows.pixel(oy, 0),
                                          ix - rows.pixel(ox, 0));
              const Octets index = *reinterpret_cast<const Octets*>(indices + o);
              Whole wins = __builtin_convertvector(index, Whole) == tap;
              if constexpr (Rectified) wins &= load(y.data + o) > Lanes{};
              sum += wins ? load(d_y.data + o) : Lanes{};
            }
          }
        }
        store(to, sum);
      }
    }
  });
}

}  // namespace

MaxPool::MaxPool(const LayerSpec& spec, int samples, const Engine& engine)
    : channels_(spec.input().channels),
      type_(spec.output_format.type),
      kind_(spec.as<op::MaxPool>()),
      indices_(spec.saved_offset(kind_.normalises ? 1 : 0, samples)),
      workspace_(engine.workspace) {
  const Window& window = kind_.window;
  CAROUSEL_CHECK(window.kernel >= 1 && 2 * window.padding <= window.kernel &&
                     window.taps() <= op::most_indexed_taps,
                 "pooling {} has windows of {} with a padding of {}", spec.name, window.kernel,
                 window.padding);
  CAROUSEL_CHECK(spec.input().channels % lanes == 0, "pooling {} of {} channels", spec.name,
                 spec.input().channels);
}

template <class Stored>
void MaxPool::find(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  const Pooling pooling(kind_.window);
  const Planes<const Stored> x(arguments.input);
  const Planes<Stored> y(arguments.output);
  auto* indices = reinterpret_cast<std::int8_t*>(arguments.saved + indices_);
  if (!kind_.normalises) return find_largest(exec, pooling, x, Plain{}, y, indices);
  const NormStatistics statistics =
      find_statistics<Stored>(exec, arguments, kind_.epsilon, workspace_);
  find_largest(exec, pooling, x, NormRelu{statistics.scale, statistics.shift}, y, indices);
}

template <class Stored>
void MaxPool::differentiate(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  const Pooling pooling(kind_.window);
  const Planes<const Stored> y(arguments.output);
  const Planes<const Stored> d_y((ConstTensor(arguments.d_output)));
  const Planes<Stored> d_x(arguments.d_input);
  const auto* indices = reinterpret_cast<const std::int8_t*>(arguments.saved + indices_);
  if (!kind_.normalises) {
    if (d_x.data != nullptr)
      hand_back<false>(exec, pooling, y, d_y, indices, d_x, arguments.adds_input);
    return;
  }
  CAROUSEL_CHECK(d_x.data != nullptr && !arguments.adds_input,
                 "what is normalised has one reader, and its batch norm learns");
  hand_back<true>(exec, pooling, y, d_y, indices, d_x, false);
  norm_gradient(
      exec, Mask::none,
      NormGradient<Stored>{.x = Planes<const Stored>(arguments.input), .d_y = d_x, .d_x = d_x},
      NormStatistics(const_cast<std::byte*>(arguments.saved), channels_),
      reinterpret_cast<double*>(workspace_.data()), arguments.d_parameters, arguments.statistics);
}

void MaxPool::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  with_stored(type_, [&]<class Stored>() { find<Stored>(exec, arguments); });
}

void MaxPool::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  with_stored(type_, [&]<class Stored>() { differentiate<Stored>(exec, arguments); });
}

AveragePool::AveragePool(const LayerSpec& spec) : type_(spec.output_format.type) {
  CAROUSEL_CHECK(
      spec.as<op::AveragePool>().window.kernel == 0 && spec.input().channels % lanes == 0,
      "average pooling {} is not one of whole images of blocks", spec.name);
}

void AveragePool::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::average_pool_forward";
  with_stored(type_, [&]<class Stored>() {
    const Planes<const Stored> x(arguments.input);
    auto* y = reinterpret_cast<Stored*>(arguments.output.data);
    for_each_task(exec, label, x.images * x.blocks, [=](int task) {
      const Stored* plane = x.plane(task / x.blocks, task % x.blocks);
      Lanes sum = {};
      for (std::int64_t p = 0; p < x.plane_size(); p += lanes) sum += load(plane + p);
      store(y + std::int64_t{task} * lanes, sum / static_cast<real>(x.pixels()));
    });
  });
}

void AveragePool::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::average_pool_backward";
  if (arguments.d_input.data == nullptr) return;
  const bool adds = arguments.adds_input;
  with_stored(type_, [&]<class Stored>() {
    const Planes<Stored> d_x(arguments.d_input);
    const auto* d_y = reinterpret_cast<const Stored*>(arguments.d_output.data);
    for_each_task(exec, label, d_x.images * d_x.blocks, [=](int task) {
      Stored* plane = d_x.plane(task / d_x.blocks, task % d_x.blocks);
      const Lanes d = load(d_y + std::int64_t{task} * lanes) / static_cast<real>(d_x.pixels());
      for (std::int64_t p = 0; p < d_x.plane_size(); p += lanes)
        store(plane + p, adds ? load(plane + p) + d : d);
    });
  });
}

std::unique_ptr<Layer> max_pool(const LayerSpec& spec, int samples, const Engine& engine) {
  return std::make_unique<MaxPool>(spec, samples, engine);
}

std::unique_ptr<Layer> average_pool(const LayerSpec& spec) {
  return std::make_unique<AveragePool>(spec);
}

}  // namespace carousel::blocked
