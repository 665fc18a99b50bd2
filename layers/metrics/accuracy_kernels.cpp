// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/metrics/largest.hpp"
#include "layers/metrics/metric_kernels.hpp"

namespace carousel::metric_kernels {
namespace {

struct IsLargest {
  template <class Numbers>
  KOKKOS_FUNCTION bool operator()(const Numbers& values, int outputs, int label) const {
    return index_of_largest(values, outputs) == label;
  }
};

}  // namespace

void accuracy(const ExecutionSpace& exec, const MetricArguments& arguments) {
  static const std::string label = "carousel::layers::accuracy";
  count_labels(label, exec, arguments, IsLargest{});
}

}  // namespace carousel::metric_kernels
