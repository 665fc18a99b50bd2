// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gradients of the weights of a convolution 3x3 with stride 1 and padding 1 by Winograd's
// F(4x4, 3x3): d_g = G^T (sum over tiles of (B^T d B) o (A d_y A^T)) G. Every sum runs over the
// tiles in their order, so threads change no bits.

#include <string>

#include "core/base/view.hpp"
#include "layers/blocked/tensor.hpp"

namespace carousel::blocked::winograd {

/// d_weights [out, in, 3, 3], of the input source(x). How much workspace that takes
/// core/model/workspace.hpp says.
template <class Stored, class Source>
void weight_gradient(const ExecutionSpace& exec, const std::string& label,
                     const Planes<const Stored>& x, const Source& source,
                     const Planes<const Stored>& d_y, real* workspace, real* d_weights);

}  // namespace carousel::blocked::winograd
