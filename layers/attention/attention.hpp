// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Attention of all tokens of a sample to one another (Vaswani et al. 2017, arXiv 1706.03762), one
// query or key per thread. The reference and the fallback; no tokens by tokens matrix is kept.

#include "core/engine/layer.hpp"
#include "layers/attention/op.hpp"

namespace carousel {

/// y_i = sum_j p_ij v_j with p_i = softmax_j(q_i k_j / sqrt(c / heads)), in each head; where it is
/// causal, over j <= i. The input's channels are queries [c], keys [c] and values [c], in each of
/// which head after head.
class Attention final : public Layer {
 public:
  Attention(const LayerSpec& spec, const Engine& engine);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  op::Attention attributes_;
  bool features_last_;
  real* scores_;  // for backward: of each query the logarithm of its sum, and its mean gradient
};

}  // namespace carousel
