// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "layers/upsample_op.hpp"

namespace carousel::ops {

/// torch.nn.Upsample(mode="bilinear" or "linear"), without align_corners.
Op upsample_linear() {
  return upsample("upsample_linear",
                  [](LayerSpec& layer, const GivenArguments& arguments,
                     const Surroundings& around) { infer_upsample(layer, arguments, around, 8); });
}

}  // namespace carousel::ops
