// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/model/metric.hpp"

namespace carousel::metrics {

Metric mae() {
  return {.name = "mae",
          .doc =
              "mean over the channels of the mean of |output - target|, in the units that the "
              "network learns in.",
          .of = TargetKind::numbers,
          .sums = sums_of_channels<2>,
          .value = mean_of_channels<2, mean_of_sum>,
          .higher_is_better = false,
          .most = no_bound};
}

}  // namespace carousel::metrics
