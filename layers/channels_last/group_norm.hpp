// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// torch.nn.GroupNorm of activations whose channels lie side by side, in the type that they are
// stored in, with what a residual network does next: the addition of a shortcut and a ReLU.

#include <span>

#include "core/engine/layer.hpp"
#include "layers/group_norm/op.hpp"

namespace carousel::channels_last {

/// Parameters: weight [c], then bias [c]. Saves mean and 1 / standard deviation, [n, groups, 2].
class GroupNorm final : public Layer {
 public:
  GroupNorm(const LayerSpec& spec, const Engine& engine);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  /// Where it rectifies after an addition, d_output becomes the gradient of the sum.
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  op::GroupNorm norm_;
  DataType type_;
  std::span<std::byte> workspace_;
};

}  // namespace carousel::channels_last
