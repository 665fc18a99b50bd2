// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What dropout, or stochastic depth, was told.

namespace carousel::op {

struct Dropout {
  double probability = 0;   // of a zero
  bool of_samples = false;  // which are dropped whole
};

}  // namespace carousel::op
