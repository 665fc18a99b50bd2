// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The middle of torch.nn.MultiheadAttention by cuDNN, in bf16, of tokens whose features lie side by
// side. Forward leaves the logarithm of the sum of every query.

#include <array>

#include "core/engine/layer.hpp"
#include "layers/vendor/graphs.hpp"

namespace carousel::vendor {

class Attention final : public Layer {
 public:
  Attention(const LayerSpec& spec, const Engine& engine);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  [[nodiscard]] AttentionShape shape(int n) const;
  [[nodiscard]] std::int64_t workspace_bytes(int n) const;
  /// Queries, keys and values in the rows that have all of them.
  [[nodiscard]] std::array<void*, 3> parts_of(const void* rows) const;

  LayerSpec spec_;
  std::string name_;
  std::string gradient_name_;
  Graphs& graphs_;
  std::span<std::byte> workspace_;
};

}  // namespace carousel::vendor
