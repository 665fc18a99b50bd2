// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Depthwise convolution of blocked activations on the host: each channel with a window of its own,
// so that a register of channels meets a register of weights at each tap.

#include <span>

#include "core/engine/layer.hpp"

namespace carousel::blocked {

/// Parameters: weights [c, 1, taps], then a bias [c] where there is one. Gradients of weights are
/// summed over each plane, in double, and then over the images in order: the workspace has
/// [n, c, taps] doubles.
class DepthwiseConvolution final : public Layer {
 public:
  DepthwiseConvolution(const LayerSpec& spec, const Engine& engine);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  template <class Stored>
  void convolve(const ExecutionSpace& exec, const ForwardArguments& arguments);
  template <class Stored>
  void weight_gradient(const ExecutionSpace& exec, const BackwardArguments& arguments);
  template <class Stored>
  void input_gradient(const ExecutionSpace& exec, const BackwardArguments& arguments);

  SampleShape in_;
  SampleShape out_;
  DataType type_;  // of activations and weights
  Window window_;
  bool has_bias_;
  bool learns_;
  std::int64_t bias_;  // where it begins behind the weights, in full numbers
  std::span<std::byte> workspace_;
};

}  // namespace carousel::blocked
