// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/metrics/metric_kernels.hpp"
#include "layers/metrics/moments.hpp"

namespace carousel::metric_kernels {
namespace {

/// The sum over the samples, and their count.
struct ScaledErrors {
  template <class Stored>
  KOKKOS_FUNCTION void operator()(const Team& team, const Stored* outputs, const real* targets,
                                  std::int64_t pixels, Sums<2>& sums) const {
    constexpr double least_variance = 1e-7;  // is added, as The Well does
    const MomentSums own = moments_of(team, outputs, targets, pixels);
    if (own.count == 0) return;
    const double mean = own.target / own.count;
    const double variance = Kokkos::fmax(own.target_square / own.count - mean * mean, 0.0);
    sums.of[0] += Kokkos::sqrt(own.square / own.count / (variance + least_variance));
    sums.of[1] += 1;
  }
};

}  // namespace

void vrmse(const ExecutionSpace& exec, const MetricArguments& arguments) {
  static const std::string label = "carousel::layers::vrmse";
  sum_channels<2>(label, exec, arguments, ScaledErrors{});
}

}  // namespace carousel::metric_kernels
