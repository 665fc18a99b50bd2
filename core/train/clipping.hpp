// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// By how much the gradient of a stage is shortened, torch.nn.utils.clip_grad_norm_ for one stage.
// The gradient itself is left as it is: updates multiply by the factor on their way.

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/real.hpp"
#include "core/base/view.hpp"

namespace carousel {

/// min(1, limit / (norm + 1e-6)) of the gradient scale * gradient_sum, `size` numbers, in device
/// memory that lies in `workspace`, of clip_bytes(size), until that is used again. Squares are
/// added in an order that depends on nothing but the size, in double.
[[nodiscard]] const real* clip_factor(const ExecutionSpace& exec, const real* gradient_sum,
                                      std::int64_t size, double scale, double limit,
                                      std::span<std::byte> workspace);

}  // namespace carousel
