// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/metrics/class_counts.hpp"

namespace carousel::metric_kernels {

void f1(const ExecutionSpace& exec, const MetricArguments& arguments) {
  static const std::string label = "carousel::layers::f1";
  count_classes(label, exec, arguments);
}

}  // namespace carousel::metric_kernels
