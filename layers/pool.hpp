// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Maximum and average over windows, torch.nn.MaxPool2d and AvgPool2d, of one
// axis and of three, too. Backward gathers: every pixel
// of the input looks at the windows it lies in, so that no two threads write to one place.

#include "core/engine/layer.hpp"

namespace carousel {

/// Padding never wins. Of equal pixels the first one has the gradient, and NaN passes.
class MaxPool final : public Layer {
 public:
  explicit MaxPool(const LayerSpec& spec);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  Window window_;
};

/// Padding counts as zeros. A window of kernel 0 is the whole image, which makes the average
/// global.
class AveragePool final : public Layer {
 public:
  explicit AveragePool(const LayerSpec& spec);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  Window window_;
};

}  // namespace carousel
