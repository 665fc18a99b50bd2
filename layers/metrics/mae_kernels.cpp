// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/metrics/metric_kernels.hpp"

namespace carousel::metric_kernels {
namespace {

/// The sum of |e| and the count.
struct Distances {
  template <class Stored>
  KOKKOS_FUNCTION void operator()(const Team& team, const Stored* outputs, const real* targets,
                                  std::int64_t pixels, Sums<2>& sums) const {
    double distance = 0;
    double count = 0;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, pixels),
        [&](std::int64_t p, double& partial, double& counted) {
          if (Kokkos::isnan(targets[p])) return;
          partial += Kokkos::abs(static_cast<double>(full(outputs[p])) - targets[p]);
          counted += 1;
        },
        distance, count);
    sums.of[0] += distance;
    sums.of[1] += count;
  }
};

}  // namespace

void mae(const ExecutionSpace& exec, const MetricArguments& arguments) {
  static const std::string label = "carousel::layers::mae";
  sum_channels<2>(label, exec, arguments, Distances{});
}

}  // namespace carousel::metric_kernels
