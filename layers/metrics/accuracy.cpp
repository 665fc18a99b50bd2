// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/model/metric.hpp"

namespace carousel::metrics {

Metric accuracy() {
  return {.name = "accuracy", .doc = "samples whose largest output is that of their label."};
}

}  // namespace carousel::metrics
