// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Convolutions 3x3 with stride 1 and padding 1 by Winograd's F(4x4, 3x3): outputs, and the
// gradients of inputs, which are such a convolution as well. Weights' gradients are in
// winograd_weights.hpp. Every sum runs over channels alone, so neither threads nor n change bits.

#include <string>

#include "core/base/view.hpp"
#include "layers/blocked/tensor.hpp"

namespace carousel::blocked::winograd {

/// Which factor of Y = W * X a product with the weights gives.
enum class Direction { output, d_input };

/// Weights [channels_out, channels_in, 3, 3] of a layer, for one direction.
template <class Stored>
struct Weights {
  Direction direction;
  int channels_in;
  int channels_out;
  const Stored* data;
};

/// y = or += the convolution of source(x) with the weights. How much workspace that takes
/// core/model/workspace.hpp says. What is stored in bf16 is transformed and added in full numbers.
template <class Stored, class Source>
void convolve(const ExecutionSpace& exec, const std::string& label, const Weights<Stored>& weights,
              const Planes<const Stored>& x, const Source& source, const Planes<Stored>& y,
              bool adds, real* workspace);

}  // namespace carousel::blocked::winograd
