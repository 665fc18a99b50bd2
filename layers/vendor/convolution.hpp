// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// torch.nn.Conv2d without bias by cuDNN, of images whose channels lie side by side, in fp32 or
// bf16, and with the batch norm and ReLU in front of it, which are made in workspace and never
// kept.

#include <array>

#include "core/engine/layer.hpp"
#include "layers/convolution/op.hpp"
#include "layers/norm_statistics.hpp"
#include "layers/vendor/graphs.hpp"
#include "layers/vendor/reorder.hpp"

namespace carousel::vendor {

/// Parameters: of the norm, if there is one, scale [c] and shift [c]; weight [out, in, kernel,
/// kernel]. The first layer of a network reads images as files have them.
class Convolution final : public Layer {
 public:
  Convolution(const LayerSpec& spec, int samples, const Engine& engine);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;
  [[nodiscard]] bool has_slow_gradient() const override { return has_slow_gradient_; }

 private:
  [[nodiscard]] ConvolutionShape shape(int n, bool normalises = false) const;
  [[nodiscard]] Tensor images(int n) const;
  [[nodiscard]] double* sums() const;
  /// Memory of weights or their gradient as cuDNN has them.
  [[nodiscard]] void* reordered_weights() const;
  [[nodiscard]] bool is_ordered(const void* weights) const;
  void convolve(const ConvolutionShape& shape, Pass pass, DataType result, const void* first,
                const void* second, void* to, const NormStatistics* norm = nullptr) const;
  /// What is convolved, of the layer's input: as it is where the graph itself normalises.
  const void* convolved_images(const ExecutionSpace& exec, const ConstTensor& input,
                               const NormStatistics* norm) const;
  const void* convolved_weights(const ExecutionSpace& exec, const real* parameters) const;
  void find_weight_gradient(const ExecutionSpace& exec, const BackwardArguments& arguments,
                            const NormStatistics* norm);

  LayerSpec spec_;
  op::Convolution kind_;
  std::array<std::string, 3> names_;  // of each pass
  DataType type_;
  Graphs& graphs_;
  std::span<std::byte> workspace_;
  ConvolutionMemory memory_;
  ChannelOrder weights_;
  std::int64_t weights_at_;    // bytes of parameters before them
  std::int64_t d_weights_at_;  // numbers
  bool has_slow_gradient_ = false;
};

}  // namespace carousel::vendor
