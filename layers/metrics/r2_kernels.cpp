// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/metrics/metric_kernels.hpp"
#include "layers/metrics/moments.hpp"

namespace carousel::metric_kernels {
namespace {

/// The sums of e^2, y and y^2, and the count.
struct Moments {
  template <class Stored>
  KOKKOS_FUNCTION void operator()(const Team& team, const Stored* outputs, const real* targets,
                                  std::int64_t pixels, Sums<4>& sums) const {
    const MomentSums own = moments_of(team, outputs, targets, pixels);
    sums.of[0] += own.square;
    sums.of[1] += own.target;
    sums.of[2] += own.target_square;
    sums.of[3] += own.count;
  }
};

}  // namespace

void r2(const ExecutionSpace& exec, const MetricArguments& arguments) {
  static const std::string label = "carousel::layers::r2";
  sum_channels<4>(label, exec, arguments, Moments{});
}

}  // namespace carousel::metric_kernels
