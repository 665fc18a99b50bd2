// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the blocked kernels find numbers of an activation, and what they make of them on the way: as
// they are, or normalised and rectified, so that such an activation need not be kept.

#include <cstdint>

#include "core/engine/layer.hpp"
#include "layers/blocked/lanes.hpp"

namespace carousel::blocked {

/// A borrowed activation [n][c / lanes][d][h][w][lanes].
template <class Real>
struct Planes {
  Real* data = nullptr;
  int images = 0;
  int blocks = 0;
  int d = 1;
  int h = 0;
  int w = 0;
  int before = 0;  // pixels of a plane in front of these, which are others'

  Planes() = default;
  /// Of a tensor that is stored so.
  template <class Number>
  explicit Planes(const BasicTensor<Number>& tensor)
      : data(reinterpret_cast<Real*>(tensor.data)),
        images(tensor.n),
        blocks(tensor.shape.channels / lanes),
        d(tensor.shape.depth),
        h(tensor.shape.height),
        w(tensor.shape.width) {}

  /// Of a plane, which of a volume has all slices.
  [[nodiscard]] std::int64_t pixels() const { return std::int64_t{d} * h * w; }
  /// From one plane to the next.
  [[nodiscard]] std::int64_t plane_size() const { return (pixels() + before) * lanes; }
  [[nodiscard]] Real* plane(int image, int block) const {
    return data + (std::int64_t{image} * blocks + block) * plane_size() +
           std::int64_t{before} * lanes;
  }
  /// Slices of all images, and where a block of one lies.
  [[nodiscard]] int slices() const { return images * d; }
  [[nodiscard]] std::int64_t slice_size() const { return std::int64_t{h} * w * lanes; }
  [[nodiscard]] Real* slice(int number, int block) const {
    return plane(number / d, block) + number % d * slice_size();
  }
  [[nodiscard]] Real* pixel(int image, int block, int z, int y, int x) const {
    return plane(image, block) + ((std::int64_t{z} * h + y) * w + x) * lanes;
  }
};

/// What a source makes of numbers that are stored so, rounded as if that were stored: whether it is
/// or not changes no bits.
template <class Stored, class Source>
[[gnu::always_inline]] inline Lanes made_of(const Source& source, const Stored* from, int block) {
  const Lanes value = source(load(from), block);
  if constexpr (Source::changes) return as_stored<Stored>(value);
  return value;
}

/// The numbers as they are.
struct Plain {
  static constexpr bool changes = false;
  [[nodiscard]] Lanes operator()(const Lanes& x, int /*block*/) const { return x; }
};

/// max(0, scale x + shift), with a scale and a shift of each channel: batch norm and ReLU.
struct NormRelu {
  static constexpr bool changes = true;
  const real* scale;
  const real* shift;

  [[nodiscard]] Lanes operator()(const Lanes& x, int block) const {
    return rectified(affine(x, load(scale + block * lanes), load(shift + block * lanes)));
  }
};

}  // namespace carousel::blocked
