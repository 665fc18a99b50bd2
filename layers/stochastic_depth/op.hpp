// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What stochastic depth was told.

namespace carousel::op {

struct StochasticDepth {
  double probability = 0;  // that a sample is dropped
};

}  // namespace carousel::op
