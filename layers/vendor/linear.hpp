// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// torch.nn.Linear of rows of features by cuBLASLt: Y = X W^T + b, in fp32 or bf16. In bf16 the bias
// is rounded for the product, since cuBLASLt adds one of the result's type; gradients of parameters
// are full numbers. GELU stays a layer of its own: cuBLASLt's is the one by tanh, not that of
// torch.nn.GELU by itself.

#include <map>

#include "core/engine/layer.hpp"
#include "layers/vendor/matmul.hpp"

namespace carousel::vendor {

/// Parameters: W [out, in], then b [out]. Rows are the samples, and of tokens each of them.
class Linear final : public Layer {
 public:
  Linear(const LayerSpec& spec, int samples, const Engine& engine);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  /// Of so many rows.
  struct Products {
    Product forward;
    Product d_weights;
    bool sums_rows = false;  // the product does, for the gradient of the bias
    Product d_input;
  };
  Products& products(int n);

  LayerSpec spec_;
  Engine engine_;
  int in_;
  int out_;
  std::map<int, Products> products_;  // of n samples
};

}  // namespace carousel::vendor
