// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/model/metric.hpp"

namespace carousel::metrics {
namespace {

double iou_of(const ClassCounts& counts) {
  return counts.both / (counts.predicted + counts.labelled - counts.both);
}

}  // namespace

Metric iou() {
  return {.name = "iou",
          .doc =
              "mean over the classes of TP / (TP + FP + FN), of those that are labels or are "
              "predicted (intersection over union, Jaccard).",
          .sums = sums_of_channels<3>,
          .value = mean_of_classes<iou_of>};
}

}  // namespace carousel::metrics
