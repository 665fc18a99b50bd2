// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A smooth rectifier.

namespace carousel::op {

struct Softplus {
  double beta = 1;        // how sharp it bends
  double threshold = 20;  // of beta x, above which it is x
};

}  // namespace carousel::op
