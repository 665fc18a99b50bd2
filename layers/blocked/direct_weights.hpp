// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gradients of the weights of a direct convolution. Images are summed in chunks, which depend on
// shapes alone, and the chunks in order, so that threads change no bits.

#include <string>

#include "core/base/view.hpp"
#include "layers/blocked/direct.hpp"
#include "layers/blocked/plane_sums.hpp"

namespace carousel::blocked {

/// d_weights = the sums over images and the pixels of the grid, which is that of d_y. Partial sums
/// are [chunk][block][tap][block of results][depth][lanes]. Pairs are of two images.
template <class Products, class Input, class Stored>
void weight_gradient(const ExecutionSpace& exec, const std::string& label, const Windows& windows,
                     const Input& input, const Planes<const Stored>& d_y,
                     const WeightStrides& strides, real* partial, real* d_weights);

/// d_bias[c] = the sum of d_y over images and pixels.
template <class Stored>
void bias_gradient(const ExecutionSpace& exec, const std::string& label,
                   const Planes<const Stored>& d_y, real* d_bias) {
  for_each_task(exec, label, d_y.blocks, [=](int block) {
    PlaneSums<1> sum;
    for (int i = 0; i < d_y.images; ++i) {
      const Stored* from = d_y.plane(i, block);
      add_pixels(
          d_y.pixels() * lanes,
          sum, [&](std::int64_t p, Lanes(&of)[1]) __attribute__((always_inline)) {
            of[0] = load(from + p);
          });
    }
    store(d_bias + std::int64_t{block} * lanes, __builtin_convertvector(sum.of[0], Lanes));
  });
}

}  // namespace carousel::blocked
