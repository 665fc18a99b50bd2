// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The passes of batch normalisation over blocked activations: statistics of a micro-batch, and the
// gradient of what was normalised. Sums are in double per slice of an image, and slices are added
// in order, so that threads change no bits.

#include <span>

#include "core/base/view.hpp"
#include "layers/blocked/tensor.hpp"
#include "layers/norm_statistics.hpp"

namespace carousel::blocked {

/// Of the input of a layer with a batch norm, whose parameters come first: of the micro-batch in
/// training, scale and shift from the running statistics in evaluation; those of an earlier forward
/// if that is run again. Partial sums take [n][d][c][2] doubles of the workspace.
template <class Stored>
[[nodiscard]] NormStatistics find_statistics(const ExecutionSpace& exec,
                                             const ForwardArguments& arguments, double epsilon,
                                             std::span<std::byte> workspace);

/// Numbers as activations are stored.
template <class Stored>
struct NormGradient {
  Planes<const Stored> x;
  Planes<const Stored> y = {};  // Mask::output only
  Planes<Stored> d_y;           // of what came out
  Planes<Stored> d_x = {};      // may be d_y; without data: not wanted
  bool adds = false;            // to what is in d_x
};

/// d_weight: of scale [c], then shift [c]; statistics: mean [c], then unbiased variance [c].
template <class Stored>
void norm_gradient(const ExecutionSpace& exec, Mask mask, const NormGradient<Stored>& tensors,
                   const NormStatistics& saved, double* partial, real* d_weight, real* statistics);

}  // namespace carousel::blocked
