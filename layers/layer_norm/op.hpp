// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What layer norms have in common.

namespace carousel::op {

/// That of torchvision's vision transformers, not the default of torch.nn.LayerNorm.
struct LayerNorm {
  double epsilon = 1e-5;
  bool bias = true;
};

}  // namespace carousel::op
