// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/metrics/metric_kernels.hpp"

namespace carousel::metric_kernels {
namespace {

/// Of equal outputs the first ones count as larger, as for accuracy.
struct IsAmongFive {
  template <class Numbers>
  KOKKOS_FUNCTION bool operator()(const Numbers& values, int outputs, int label) const {
    const real own = full(values[label]);
    if (Kokkos::isnan(own)) return false;
    int before = 0;
    for (int c = 0; c < outputs; ++c) {
      const real value = full(values[c]);
      if (value > own || (value == own && c < label)) ++before;
    }
    return before < 5;
  }
};

}  // namespace

void top5(const ExecutionSpace& exec, const MetricArguments& arguments) {
  static const std::string label = "carousel::layers::top5";
  count_labels(label, exec, arguments, IsAmongFive{});
}

}  // namespace carousel::metric_kernels
