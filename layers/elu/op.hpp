// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Exponential linear unit.

namespace carousel::op {

struct Elu {
  double alpha = 1;  // minus the limit for large negative numbers
};

}  // namespace carousel::op
