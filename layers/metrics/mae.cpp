// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/model/metric.hpp"

namespace carousel::metrics {
namespace {

int sums(const TargetSpec& target) {
  return 2 * target.channels();
}

double value(std::span<const double> sums, double /*samples*/, const TargetSpec& /*target*/) {
  return mean_of_channels(sums, 2,
                          [](std::span<const double> own) { return ratio_of(own[0], own[1]); });
}

}  // namespace

Metric mae() {
  return {.name = "mae",
          .doc =
              "mean over the channels of the mean of |output - target|, in the units that the "
              "network learns in.",
          .of = TargetKind::numbers,
          .sums = sums,
          .value = value,
          .higher_is_better = false,
          .most = no_bound};
}

}  // namespace carousel::metrics
