// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// torch.nn.LayerNorm of tokens whose features lie side by side, in the type that they are stored
// in.

#include <span>

#include "core/engine/layer.hpp"

namespace carousel::channels_last {

/// Parameters: weight [c], then, unless it has none, bias [c]. Saved: [n, 2, tokens], mean and 1 /
/// standard deviation.
class LayerNorm final : public Layer {
 public:
  LayerNorm(const LayerSpec& spec, const Engine& engine);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  DataType type_;
  double epsilon_;
  bool has_bias_;
  std::span<std::byte> workspace_;
};

}  // namespace carousel::channels_last
