// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Layer normalisation of tokens, torch.nn.LayerNorm over their features (Ba et al. 2016, arXiv
// 1607.06450).

#include "core/engine/layer.hpp"

namespace carousel {

/// y = (x - mean) / sqrt(variance + epsilon) weight + bias, of each token. Parameters:
/// weight [c], then, unless it has none, bias [c]. Saves mean and inverse deviation, [n, 2,
/// tokens].
class LayerNorm final : public Layer {
 public:
  explicit LayerNorm(const LayerSpec& spec);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  TensorFormat format_;
  double epsilon_;
  bool has_bias_;
};

}  // namespace carousel
