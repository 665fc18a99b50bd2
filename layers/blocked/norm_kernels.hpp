// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The passes of batch normalisation over blocked activations: statistics of a micro-batch, and the
// gradient of what was normalised. Sums are in double per image, and images are added in order, so
// that threads change no bits.

#include <span>

#include "core/base/view.hpp"
#include "layers/blocked/tensor.hpp"

namespace carousel::blocked {

/// What forward leaves to backward of a batch norm, [channels] each.
struct NormStatistics {
  real* mean;
  real* inverse;   // 1 / standard deviation
  real* variance;  // unbiased
  real* scale;     // y = scale x + shift
  real* shift;

  NormStatistics(std::byte* saved, std::int64_t channels)
      : mean(reinterpret_cast<real*>(saved)),
        inverse(mean + channels),
        variance(inverse + channels),
        scale(variance + channels),
        shift(scale + channels) {}
};

/// Of the input of a layer with a batch norm, whose parameters come first: of the micro-batch in
/// training, scale and shift from the running statistics in evaluation; those of an earlier forward
/// if that is run again. Partial sums take [n][c][2] doubles of the workspace.
[[nodiscard]] NormStatistics find_statistics(const ExecutionSpace& exec,
                                             const ForwardArguments& arguments,
                                             std::span<std::byte> workspace);

/// What the gradient of a normalised activation is multiplied with.
enum class Mask {
  none,
  input,   // 1 where scale x + shift is above zero
  output,  // 1 where y is above zero; then d_y is overwritten by d_y o mask
};

struct NormGradient {
  Planes<const real> x;
  Planes<const real> y = {};  // Mask::output only
  Planes<real> d_y;           // of what came out
  Planes<real> d_x = {};      // may be d_y; without data: not wanted
  bool adds = false;          // to what is in d_x
};

/// d_weight: of scale [c], then shift [c]; statistics: mean [c], then unbiased variance [c].
void norm_gradient(const ExecutionSpace& exec, Mask mask, const NormGradient& tensors,
                   const NormStatistics& saved, double* partial, real* d_weight, real* statistics);

}  // namespace carousel::blocked
