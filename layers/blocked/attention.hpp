// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Attention of tokens in blocks of channels, by tiles of queries that meet all keys at once, causal
// ones those up to the last query of the tile: what a thread holds of the tokens by tokens matrix
// fits its cache, and backward makes it again.

#include "core/engine/layer.hpp"
#include "layers/attention/op.hpp"
#include "layers/blocked/products.hpp"

namespace carousel::blocked {

/// As carousel::Attention. A head has whole blocks of channels. Activations in bf16 are multiplied
/// in pairs, and so are probabilities and their gradients, rounded as tensors are;
/// engine.products = "tiles" multiplies them in full.
class Attention final : public Layer {
 public:
  explicit Attention(const LayerSpec& spec);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  /// Calls run.operator()<Products, Stored>().
  template <class Run>
  void with_kinds(const Run& run) const;

  DataType type_;  // of activations
  ProductOrder products_;
  op::Attention attributes_;
};

/// The same by a kind of products, of activations that are stored so.
template <class Products, class Stored>
struct AttentionKernels {
  static void forward(const ExecutionSpace& exec, const op::Attention& attributes,
                      const ForwardArguments& arguments);
  static void backward(const ExecutionSpace& exec, const op::Attention& attributes,
                       const BackwardArguments& arguments);
};

}  // namespace carousel::blocked
