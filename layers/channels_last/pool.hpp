// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Poolings of images whose channels lie side by side, in the type that they are stored in: the
// largest number of a window, and the average of whole images.

#include "core/engine/layer.hpp"

namespace carousel::channels_last {

/// Saved for backward: a byte for every output, the place of the largest number in its window.
class MaxPool final : public Layer {
 public:
  MaxPool(const LayerSpec& spec, int samples);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  DataType type_;
  Window window_;
  std::int64_t indices_;  // where they begin in what is saved
};

/// The mean of every channel of an image, torch.nn.AdaptiveAvgPool2d(1).
class AveragePool final : public Layer {
 public:
  explicit AveragePool(const LayerSpec& spec);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  DataType from_;
  DataType to_;
};

}  // namespace carousel::channels_last
