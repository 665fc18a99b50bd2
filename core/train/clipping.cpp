// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/clipping.hpp"

#include "core/base/range.hpp"
#include "core/optim/norm_blocks.hpp"

namespace carousel {
namespace {

/// Sums that a block is added up in, side by side, so that a host does so in vectors.
constexpr int lanes = 16;

}  // namespace

void square_blocks(const ExecutionSpace& exec, const real* gradient_sum, std::int64_t size,
                   double* sums) {
  static const std::string label = "carousel::train::square_blocks";
  Kokkos::parallel_for(
      label, pieces(exec, norm_blocks(size)), KOKKOS_LAMBDA(std::int64_t block) {
        const std::int64_t begin = block * norm_block;
        const std::int64_t end = size - begin < norm_block ? size : begin + norm_block;
        double parts[lanes] = {};
        std::int64_t i = begin;
        for (; i + lanes <= end; i += lanes) {
          for (int lane = 0; lane < lanes; ++lane) {
            const auto value = static_cast<double>(gradient_sum[i + lane]);
            parts[lane] += value * value;
          }
        }
        for (int lane = 0; i < end; ++i, ++lane) {
          const auto value = static_cast<double>(gradient_sum[i]);
          parts[lane] += value * value;
        }
        double sum = 0;
        for (const double part : parts) sum += part;
        sums[block] = sum;
      });
}

void find_norm(const ExecutionSpace& exec, const double* sums, std::int64_t blocks, double scale,
               real* norm) {
  static const std::string label = "carousel::train::find_norm";
  Kokkos::parallel_for(
      label, range(exec, 1), KOKKOS_LAMBDA(int) {
        double sum = 0;
        for (std::int64_t k = 0; k < blocks; ++k) sum += sums[k];
        *norm = static_cast<real>(scale * Kokkos::sqrt(sum));
      });
}

void leave_own_norms(const ExecutionSpace& exec, real* norms, int stages, int first, int end) {
  static const std::string label = "carousel::train::leave_own_norms";
  Kokkos::parallel_for(
      label, range(exec, stages), KOKKOS_LAMBDA(int j) {
        if (j < first || j >= end) norms[j] = 0;
      });
}

void find_clip_factor(const ExecutionSpace& exec, const real* norms, int parts, double limit,
                      real* factor) {
  static const std::string label = "carousel::train::find_clip_factor";
  Kokkos::parallel_for(
      label, range(exec, 1), KOKKOS_LAMBDA(int) {
        double sum = 0;
        for (int k = 0; k < parts; ++k) {
          const auto norm = static_cast<double>(norms[k]);
          sum += norm * norm;
        }
        constexpr double tiny = 1e-6;  // PyTorch's
        const double share = limit / (Kokkos::sqrt(sum) + tiny);
        *factor = static_cast<real>(share < 1 ? share : 1.0);
      });
}

}  // namespace carousel
