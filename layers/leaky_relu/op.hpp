// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Leaky rectified linear unit.

namespace carousel::op {

struct LeakyRelu {
  double negative_slope = 0.01;
};

}  // namespace carousel::op
