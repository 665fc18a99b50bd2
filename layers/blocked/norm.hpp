// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Batch norm of blocked activations on the host, with what a residual network does next: the
// addition of a shortcut and a ReLU, in the same passes over memory.

#include <span>

#include "core/engine/layer.hpp"
#include "layers/batch_norm/op.hpp"

namespace carousel::blocked {

/// y = [max(0,] scale x + shift [+ second] [)]. Parameters: weight [c], then bias [c].
class BatchNorm final : public Layer {
 public:
  BatchNorm(const LayerSpec& spec, const Engine& engine);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  /// Where it rectifies after an addition, d_output becomes the gradient of the sum.
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  template <class Stored>
  void apply(const ExecutionSpace& exec, const ForwardArguments& arguments);
  template <class Stored>
  void differentiate(const ExecutionSpace& exec, const BackwardArguments& arguments);

  int channels_;
  DataType type_;  // of activations
  op::BatchNorm kind_;
  std::span<std::byte> workspace_;
};

}  // namespace carousel::blocked
