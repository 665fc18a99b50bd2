// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The class token of tokens whose features lie side by side.

#include "core/engine/layer.hpp"

namespace carousel::channels_last {

class FirstToken final : public Layer {
 public:
  explicit FirstToken(const LayerSpec& spec);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  DataType type_;
};

}  // namespace carousel::channels_last
