// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gradients of the weights of a direct convolution. Images are summed in chunks, which depend on
// shapes alone, and the chunks in order, so that threads change no bits.

#include <string>

#include "core/base/view.hpp"
#include "layers/blocked/direct.hpp"

namespace carousel::blocked {

/// d_weights = the sums over images and the pixels of the grid, which is that of d_y. Partial sums
/// are [chunk][block][tap][block of results][depth][lanes].
template <class Input>
void weight_gradient(const ExecutionSpace& exec, const std::string& label, const Windows& windows,
                     const Input& input, const Planes<const real>& d_y,
                     const WeightStrides& strides, real* partial, real* d_weights);

/// d_bias[c] = the sum of d_y over images and pixels.
void bias_gradient(const ExecutionSpace& exec, const std::string& label,
                   const Planes<const real>& d_y, real* d_bias);

}  // namespace carousel::blocked
