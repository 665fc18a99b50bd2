// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// By how much gradients are shortened, as torch.nn.utils.clip_grad_norm_ does: by the norm of one
// stage or of all. Gradients themselves are left as they are: updates multiply by the factor on
// their way.

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/real.hpp"
#include "core/base/view.hpp"

namespace carousel {

/// [norm_blocks(size)] sums of the squares of every block of gradient_sum, `size` numbers, in
/// device memory; in double, in an order that depends on nothing but the size.
void square_blocks(const ExecutionSpace& exec, const real* gradient_sum, std::int64_t size,
                   double* sums);
/// norm = that of the gradient scale * gradient_sum, from the sums of its blocks, which are added
/// in their order.
void find_norm(const ExecutionSpace& exec, const double* sums, std::int64_t blocks, double scale,
               real* norm);

/// Zeros for all but stages first .. end - 1 of [stages] norms, so that a sum over devices which
/// have one stage each is exact in any order.
void leave_own_norms(const ExecutionSpace& exec, real* norms, int stages, int first, int end);

/// factor = min(1, limit / (norm + 1e-6)) of the gradient that parts of these norms make up, added
/// in their order.
void find_clip_factor(const ExecutionSpace& exec, const real* norms, int parts, double limit,
                      real* factor);

}  // namespace carousel
