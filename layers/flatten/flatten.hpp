// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns [c, h, w] into features, torch.nn.Flatten. In NCHW the memory stays as it is: in place
// there is no kernel at all, otherwise one copy.

#include "core/engine/layer.hpp"

namespace carousel {

class Flatten final : public Layer {
 public:
  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;
};

}  // namespace carousel
