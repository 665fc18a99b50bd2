// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Convolutions as they are defined, of images and volumes, for every kernel and stride: outputs,
// and the gradients of inputs as dense sums, one for each pixel of a square, or a cube, of strides.
// Every sum runs over channels and taps in one order, so neither threads nor n change bits.

#include <string>

#include "core/base/view.hpp"
#include "layers/blocked/products.hpp"
#include "layers/blocked/tasks.hpp"
#include "layers/blocked/windows.hpp"

namespace carousel::blocked {

/// Where weights [out, in, taps] are: distances of neighbours in memory.
struct WeightStrides {
  std::int64_t result;   // channels of the result
  std::int64_t sum;      // channels of the sum
  int taps;              // of a block
  int tap = 1;           // taps
  int channels = lanes;  // of a pixel; a longer depth goes on with the next column

  /// Of the sums the other way round, where blocks are read.
  [[nodiscard]] WeightStrides turned() const {
    return {.result = sum, .sum = result, .taps = taps};
  }
};

/// Where the bias of a layer begins behind its weights as they are stored, in full numbers.
[[nodiscard]] inline std::int64_t behind_weights(const LayerSpec& spec) {
  return spec.weights().stored_bytes() / std::int64_t{sizeof(real)};
}

/// Of a weight, from the first one of its channel of the result and block on.
[[nodiscard]] constexpr std::int64_t offset_of(const WeightStrides& strides, int tap, int depth) {
  return depth % strides.channels * strides.sum + depth / strides.channels +
         std::int64_t{tap} * strides.tap;
}

/// Packs weights as [result / v lanes][blocks][taps][depth / together][v lanes][together], with v
/// registers, for a kind of products.
template <class Products, class Weight>
void pack_weights(const ExecutionSpace& exec, const std::string& label,
                  const WeightStrides& strides, const Weight* weights, int result_blocks,
                  int sum_blocks, int depth, StoredBy<Products>* packed);

/// What sums begin with.
struct Beginning {
  bool adds = false;           // what is there
  const real* bias = nullptr;  // else a number of each channel; null: 0
};

/// y = sums of the windows with packed weights, of which there are `taps` in a block.
template <class Products, class Input, class Out>
void convolve(const ExecutionSpace& exec, const std::string& label, const Windows& windows,
              const Input& input, const StoredBy<Products>* packed, int taps, const Planes<Out>& y,
              const Beginning& beginning);

/// Sets the pixels of a grid without taps to zero.
template <class Out>
void clear_grid(const ExecutionSpace& exec, const std::string& label, const Windows& windows,
                const Planes<Out>& y) {
  const Windows* at = &windows;
  for_each_task(exec, label, y.images * y.blocks, [=](int task) {
    for (int r = 0; r < at->d * at->h; ++r) {
      Out* to = y.pixel(task / y.blocks, task % y.blocks, r / at->h * at->out_step + at->out_z,
                        r % at->h * at->out_step + at->out_y, at->out_x);
      for (int c = 0; c < at->w; ++c) store(to + std::int64_t{c} * at->out_step * lanes, Lanes{});
    }
  });
}

}  // namespace carousel::blocked
