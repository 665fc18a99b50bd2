// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rectified linear unit, torch.nn.ReLU. Usually in place: backward needs the output alone.

#include "core/engine/layer.hpp"

namespace carousel {

class Relu final : public Layer {
 public:
  explicit Relu(const LayerSpec& spec);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  DataType type_;
};

}  // namespace carousel
