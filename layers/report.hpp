// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a loss tells of a micro-batch in front of the sums of metrics.

#include "core/base/view.hpp"
#include "core/model/metric.hpp"

namespace carousel {

/// The mean loss over n samples, in a kernel; report is [report_head].
KOKKOS_INLINE_FUNCTION void put_report(double* report, double loss, int n) {
  static_assert(report_head == 3);
  report[0] = loss;
  report[1] = Kokkos::isfinite(loss) ? 0.0 : 1.0;
  report[2] = n;
}

}  // namespace carousel
