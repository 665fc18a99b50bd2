// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/model/metric.hpp"

namespace carousel::metrics {

/// As The Well (Ohana et al. 2024, arXiv 2412.00568) measures predicted fields.
Metric vrmse() {
  return {.name = "vrmse",
          .doc =
              "mean over samples and channels of the root of the mean squared error over the "
              "variance of the target's pixels; 1 is as good as their mean.",
          .of = TargetKind::numbers,
          .sums = sums_of_channels<2>,
          .value = mean_of_channels<2, mean_of_sum>,
          .higher_is_better = false,
          .most = no_bound,
          .needs_pixels = true};
}

}  // namespace carousel::metrics
