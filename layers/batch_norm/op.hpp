// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a batch norm does besides, where others were fused with it.

namespace carousel::op {

struct BatchNorm {
  bool adds = false;       // the second input, to what is normalised
  bool rectifies = false;  // what comes out
};

}  // namespace carousel::op
