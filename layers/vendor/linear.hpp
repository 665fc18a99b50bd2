// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// torch.nn.Linear of rows of features by cuBLASLt.

#include "core/engine/layer.hpp"
#include "layers/vendor/row_products.hpp"

namespace carousel::vendor {

/// Parameters: W [out, in], then b [out]. Rows are the samples, and of tokens each of them.
class Linear final : public Layer {
 public:
  Linear(const LayerSpec& spec, int samples, const Engine& engine);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  int tokens_;
  std::int64_t weights_;       // numbers
  std::int64_t weight_bytes_;  // as they are stored
  bool learns_;
  RowProducts products_;
};

}  // namespace carousel::vendor
