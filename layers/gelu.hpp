// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gaussian error linear unit, torch.nn.GELU without approximation (Hendrycks & Gimpel 2016, arXiv
// 1606.08415): x times the probability that a normal number is less than x.

#include "core/engine/layer.hpp"

namespace carousel {

class Gelu final : public Layer {
 public:
  explicit Gelu(const LayerSpec& spec);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  DataType type_;
};

}  // namespace carousel
