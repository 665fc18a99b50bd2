// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The passes of batch normalisation over activations whose channels lie side by side: statistics of
// a micro-batch, what is normalised, and its gradient. Sums are in double, of chunks of rows and
// then of these, in an order that follows from shapes alone.

#include "core/base/view.hpp"
#include "layers/channels_last/rows.hpp"
#include "layers/norm_statistics.hpp"

namespace carousel::channels_last {

/// Of the input of a layer with a batch norm, stored in `type`: of the micro-batch in training,
/// scale and shift from the running statistics in evaluation; those of an earlier forward if that
/// is run again. `weight`: scale [c], then shift [c].
[[nodiscard]] NormStatistics find_statistics(const ExecutionSpace& exec, DataType type,
                                             const ForwardArguments& arguments, double epsilon,
                                             const real* weight, double* partial);

/// y = [max(0,] scale x + shift [+ second] [)], of tensors that are stored in `type`.
void normalise(const ExecutionSpace& exec, DataType type, const ConstTensor& x,
               const ConstTensor& second, const NormStatistics& statistics, bool rectifies,
               const Tensor& y);

struct NormGradient {
  ConstTensor x;
  ConstTensor y = {};  // Mask::output only
  Tensor d_y;          // of what came out
  Tensor d_x = {};     // may be d_y; without data: not wanted
  bool adds = false;   // to what is in d_x
};

/// d_weight: of scale [c], then shift [c]; statistics: mean [c], then unbiased variance [c].
void norm_gradient(const ExecutionSpace& exec, DataType type, Mask mask,
                   const NormGradient& tensors, const NormStatistics& saved, double* partial,
                   real* d_weight, real* statistics);

}  // namespace carousel::channels_last
