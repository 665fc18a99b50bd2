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

/// Transforms weights [out, in, 3, 3] for convolve() in the same direction, to 36 numbers each:
/// [36][result / v lanes][sum][v lanes], with v registers side by side.
void transform_weights(const ExecutionSpace& exec, const std::string& label, Direction direction,
                       int channels_in, int channels_out, const real* weights, real* transformed);

/// y = or += the convolution of source(x) with transformed weights.
template <class Source>
void convolve(const ExecutionSpace& exec, const std::string& label, const Planes<const real>& x,
              const Source& source, const real* weights, const Planes<real>& y, bool adds);

}  // namespace carousel::blocked::winograd
