// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/dropout/op.hpp"

#include "layers/dropout_op.hpp"

namespace carousel::ops {

/// torch.nn.Dropout
Op dropout() {
  return dropping<false>("dropout");
}

}  // namespace carousel::ops
