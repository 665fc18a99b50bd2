// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Transposed convolution of blocked activations on the host: the convolution from its output to its
// input, whose weights are the same, run backwards.

#include <span>
#include <vector>

#include "core/engine/layer.hpp"
#include "layers/blocked/direct.hpp"

namespace carousel::blocked {

/// Parameters: weights [in, out, taps], then a bias [out] where there is one.
class TransposedConvolution final : public Layer {
 public:
  TransposedConvolution(const LayerSpec& spec, const Engine& engine);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  template <class Stored>
  void spread(const ExecutionSpace& exec, const ForwardArguments& arguments);
  template <class Stored>
  void differentiate(const ExecutionSpace& exec, const BackwardArguments& arguments);

  template <class Stored>
  [[nodiscard]] Stored* workspace() const {
    return reinterpret_cast<Stored*>(workspace_.data());
  }

  DataType type_;  // of activations and weights
  ProductOrder products_;
  std::int64_t weights_;  // numbers
  std::int64_t bias_;     // where it begins behind the weights, in full numbers
  bool has_bias_;
  bool learns_;
  std::span<std::byte> workspace_;
  WeightStrides strides_;       // of the sums of that convolution
  Windows windows_;             // of its outputs, which are the inputs here
  std::vector<Windows> grids_;  // of its inputs' gradients
};

}  // namespace carousel::blocked
