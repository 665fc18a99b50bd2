// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What an RMS norm is told.

namespace carousel::op {

struct RmsNorm {
  double epsilon = 1e-6;  // beside the mean square; torch.nn.RMSNorm's follows from the type
};

}  // namespace carousel::op
