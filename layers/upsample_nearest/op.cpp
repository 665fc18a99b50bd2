// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/upsample_op.hpp"

namespace carousel::ops {

/// torch.nn.Upsample(mode="nearest"): every pixel becomes a square of pixels.
Op upsample_nearest() {
  return upsample("upsample_nearest",
                  [](LayerSpec& layer, const GivenArguments& arguments,
                     const Surroundings& around) { infer_upsample(layer, arguments, around, 1); });
}

}  // namespace carousel::ops
