// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Poolings of blocked activations on the host: the largest number of a window, alone or of what a
// batch norm and a ReLU make of the input on the way, and the average of whole images.

#include <span>

#include "core/engine/layer.hpp"
#include "layers/max_pool/op.hpp"

namespace carousel::blocked {

/// Saved for backward: statistics of the batch norm, where there is one; then a byte for every
/// output, the place of the largest number in its window.
class MaxPool final : public Layer {
 public:
  MaxPool(const LayerSpec& spec, int samples, const Engine& engine);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  template <class Stored>
  void find(const ExecutionSpace& exec, const ForwardArguments& arguments);
  template <class Stored>
  void differentiate(const ExecutionSpace& exec, const BackwardArguments& arguments);

  int channels_;
  DataType type_;  // of activations
  op::MaxPool kind_;
  std::int64_t indices_;  // where they begin in what is saved
  std::span<std::byte> workspace_;
};

/// The mean of every channel of an image, torch.nn.AdaptiveAvgPool2d(1).
class AveragePool final : public Layer {
 public:
  explicit AveragePool(const LayerSpec& spec);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  DataType type_;  // of activations
};

}  // namespace carousel::blocked
