// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a group norm is told, what was fused with it, and what its kernels agree on, wherever the
// channels lie.

#include "core/model/layer_spec.hpp"

namespace carousel::op {

struct GroupNorm {
  int groups = 1;
  double epsilon = 1e-5;
  bool is_affine = true;   // it has a weight and a bias for each channel
  bool adds = false;       // the second input, to what is normalised
  bool rectifies = false;  // what comes out
};

}  // namespace carousel::op

namespace carousel {

/// Parts of an image of so many pixels that are added up apart where channels lie side by side, so
/// that a GPU has work: as many as are all of one size, up to 16.
[[nodiscard]] int group_norm_parts(int pixels);

}  // namespace carousel
