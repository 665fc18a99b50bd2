// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The gradients of a group norm's weight and bias, from sums over the pixels of every image.

#include "core/base/range.hpp"

namespace carousel::detail {

/// Adds `partial`, [n][2][c], in the order of the images: gradient of the weight [c], then of the
/// bias [c].
inline void add_images(const ExecutionSpace& exec, int n, int channels, const double* partial,
                       real* d_parameters) {
  static const std::string label = "carousel::layers::group_norm_backward_weight";
  const std::int64_t numbers = std::int64_t{2} * channels;
  Kokkos::parallel_for(
      label, range(exec, numbers), KOKKOS_LAMBDA(std::int64_t k) {
        double sum = 0;
        for (int i = 0; i < n; ++i) sum += partial[i * numbers + k];
        d_parameters[k] = static_cast<real>(sum);
      });
}

}  // namespace carousel::detail
