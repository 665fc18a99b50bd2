// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What kernels of batch norms agree on, wherever the channels of their activations lie.

#include <cstddef>
#include <cstdint>

#include "core/base/real.hpp"

namespace carousel {

/// What forward leaves to backward of a batch norm, [channels] each, in full numbers.
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

/// What the gradient of a normalised activation is multiplied with.
enum class Mask {
  none,
  input,   // 1 where scale x + shift is above zero
  output,  // 1 where y is above zero; then d_y is overwritten by d_y o mask
};

}  // namespace carousel
