// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/model/metric.hpp"

namespace carousel::metrics {

Metric top5() {
  return {.name = "top5",
          .doc = "samples whose five largest outputs have that of their label.",
          .least_outputs = 6};
}

}  // namespace carousel::metrics
