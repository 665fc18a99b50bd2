// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include <cmath>

#include "core/model/metric.hpp"

namespace carousel::metrics {
namespace {

double root_of_mean(std::span<const double> sums) {
  return std::sqrt(mean_of_sum(sums));
}

}  // namespace

Metric rmse() {
  return {.name = "rmse",
          .doc =
              "mean over the channels of the root of the mean of (output - target)^2, in the "
              "units that the network learns in.",
          .of = TargetKind::numbers,
          .sums = sums_of_channels<2>,
          .value = mean_of_channels<2, root_of_mean>,
          .higher_is_better = false,
          .most = no_bound};
}

}  // namespace carousel::metrics
