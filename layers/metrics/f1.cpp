// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/model/metric.hpp"

namespace carousel::metrics {
namespace {

double f1_of(const ClassCounts& counts) {
  return 2 * counts.both / (counts.predicted + counts.labelled);
}

}  // namespace

Metric f1() {
  return {.name = "f1",
          .doc =
              "mean over the classes of 2 TP / (2 TP + FP + FN), of those that are labels or are "
              "predicted (F1, macro).",
          .sums = sums_of_channels<3>,
          .value = mean_of_classes<f1_of>};
}

}  // namespace carousel::metrics
