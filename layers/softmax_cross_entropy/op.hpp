// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the loss of a classifier was told.

namespace carousel::op {

struct SoftmaxCrossEntropy {
  double smoothing = 0;  // share of the target that all classes have alike, in training
};

}  // namespace carousel::op
