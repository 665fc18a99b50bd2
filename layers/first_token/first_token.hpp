// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The first token of a sample alone, the class token of a vision transformer.

#include "core/engine/layer.hpp"

namespace carousel {

class FirstToken final : public Layer {
 public:
  explicit FirstToken(const LayerSpec& spec);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  TensorFormat format_;  // of the tokens
};

}  // namespace carousel
