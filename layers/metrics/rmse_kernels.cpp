// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/metrics/metric_kernels.hpp"
#include "layers/metrics/moments.hpp"

namespace carousel::metric_kernels {
namespace {

/// The sum of e^2 and the count.
struct Squares {
  template <class Stored>
  KOKKOS_FUNCTION void operator()(const Team& team, const Stored* outputs, const real* targets,
                                  std::int64_t pixels, Sums<2>& sums) const {
    const MomentSums own = moments_of(team, outputs, targets, pixels);
    sums.of[0] += own.square;
    sums.of[1] += own.count;
  }
};

}  // namespace

void rmse(const ExecutionSpace& exec, const MetricArguments& arguments) {
  static const std::string label = "carousel::layers::rmse";
  sum_channels<2>(label, exec, arguments, Squares{});
}

}  // namespace carousel::metric_kernels
