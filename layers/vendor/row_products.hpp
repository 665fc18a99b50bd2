// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of features times weights by cuBLASLt: Y = X W^T + b, in fp32 or bf16, and its gradients. In
// bf16 the bias is rounded for the product, since cuBLASLt adds one of the result's type; gradients
// of parameters are full numbers. GELU stays a layer of its own: cuBLASLt's is the one by tanh, not
// that of torch.nn.GELU by itself.

#include <map>

#include "core/engine/engine.hpp"
#include "layers/vendor/matmul.hpp"

namespace carousel::vendor {

/// X [rows, in], W [out, in], b [out], Y [rows, out]; W, X, Y and gradients of the last two are
/// stored in one type.
class RowProducts {
 public:
  /// Chooses how `rows` are multiplied; others are as they come. The engine's workspace begins with
  /// product_workspace bytes and room for a bias in the type.
  RowProducts(const Engine& engine, std::string label, int in, int out, DataType type, int rows);

  void forward(const ExecutionSpace& exec, int rows, const void* x, const void* weights,
               const real* bias, void* y);
  void find_parameter_gradients(const ExecutionSpace& exec, int rows, const void* x,
                                const void* d_y, real* d_weights, real* d_bias);
  /// Added to what is there if `adds`.
  void find_input_gradient(const ExecutionSpace& exec, int rows, const void* weights,
                           const void* d_y, void* d_x, bool adds);

 private:
  struct Products {
    Product forward;
    Product d_weights_and_bias;
    Product d_weights;
    Product d_input;
  };
  Products& products(int rows);

  Engine engine_;
  std::string label_;
  int in_;
  int out_;
  DataType type_;
  std::map<int, Products> products_;  // of so many rows
};

}  // namespace carousel::vendor
