// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The residual addition, in the place of its first term. Where the gradient of the sum serves both
// terms as it is, the planner lets them share it and backward has nothing to do.

#include "core/engine/layer.hpp"

namespace carousel {

class Add final : public Layer {
 public:
  explicit Add(const LayerSpec& spec);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  DataType type_;
};

}  // namespace carousel
