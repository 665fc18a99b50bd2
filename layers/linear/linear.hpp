// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fully connected layer, torch.nn.Linear: Y = X W^T [+ b] on the rows of a micro-batch. Products
// are those of layers/gemm.hpp; vendor libraries are not used here.

#include "core/engine/layer.hpp"

namespace carousel {

/// Parameters: W [out, in], then b [out], unless it has no bias.
class Linear final : public Layer {
 public:
  explicit Linear(const LayerSpec& spec);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  int in_;
  int out_;
  bool has_bias_;
  bool learns_;
};

}  // namespace carousel
