// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/model/metric.hpp"

namespace carousel::metrics {
namespace {

/// Targets that are all the same are met exactly, or not at all, as scikit-learn has it.
double r2_of(std::span<const double> own) {
  const double spread = own[2] - own[1] * ratio_of(own[1], own[3]);
  if (spread > 0) return 1 - own[0] / spread;
  return own[0] > 0 ? 0 : 1;
}

}  // namespace

Metric r2() {
  return {.name = "r2",
          .doc =
              "coefficient of determination, mean over the channels: 1 less the sum of squared "
              "errors over that of the targets' deviations from their mean.",
          .of = TargetKind::numbers,
          .sums = sums_of_channels<4>,
          .value = mean_of_channels<4, r2_of>,
          .least = -no_bound};
}

}  // namespace carousel::metrics
