// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Attention of tokens in blocks of channels, by tiles of queries that meet all keys at once: what a
// thread holds of the tokens by tokens matrix fits its cache, and backward makes it again.

#include "core/engine/layer.hpp"

namespace carousel::blocked {

/// As carousel::Attention. A head has whole blocks of channels.
class Attention final : public Layer {
 public:
  explicit Attention(const LayerSpec& spec);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  template <class Stored>
  void average_values(const ExecutionSpace& exec, const ForwardArguments& arguments);
  template <class Stored>
  void differentiate(const ExecutionSpace& exec, const BackwardArguments& arguments);

  DataType type_;  // of activations
  int heads_;
};

}  // namespace carousel::blocked
