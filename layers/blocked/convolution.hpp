// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Convolution of blocked activations on the host, alone or behind a batch norm and a ReLU whose
// result is made on the way and never kept. By which algorithm its spec says.

#include <span>
#include <vector>

#include "core/engine/layer.hpp"
#include "layers/blocked/direct.hpp"
#include "layers/convolution/op.hpp"

namespace carousel::blocked {

/// Parameters: those of the batch norm, scale [in] and shift [in], where there is one; then weights
/// [out, in, taps], and a bias [out] where there is one. A linear layer of tokens is a
/// convolution of pixels.
class Convolution final : public Layer {
 public:
  /// The outputs of a plane lie behind `before` pixels that others write.
  Convolution(const LayerSpec& spec, const Engine& engine, int before = 0);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  /// Of activations and weights that are stored so.
  template <class Stored>
  void convolve(const ExecutionSpace& exec, const ForwardArguments& arguments);
  template <class Stored>
  void differentiate(const ExecutionSpace& exec, const BackwardArguments& arguments);
  /// Forward with an input that is read as `source` says.
  template <class Stored, class Source>
  void convolve(const ExecutionSpace& exec, const ForwardArguments& arguments,
                const Source& source);
  template <class Stored, class Source>
  void weight_gradient(const ExecutionSpace& exec, const BackwardArguments& arguments,
                       const Source& source);
  template <class Stored>
  void input_gradient(const ExecutionSpace& exec, const BackwardArguments& arguments);
  template <class Stored, class Number>
  [[nodiscard]] Planes<Stored> output_planes(const BasicTensor<Number>& tensor) const;

  template <class Stored>
  [[nodiscard]] Stored* workspace() const {
    return reinterpret_cast<Stored*>(workspace_.data());
  }

  SampleShape in_;
  SampleShape out_;
  DataType type_;  // of what it leaves and of weights; of what it reads, unless these are images
  ProductOrder products_;
  op::Convolution kind_;
  bool reads_images_;  // [n, c, h, w] of files, in full numbers
  bool flat_;          // planes are one row each
  int before_;
  bool has_bias_;
  bool learns_;
  std::int64_t norm_size_;  // parameters of the batch norm
  std::int64_t weights_;    // numbers
  std::int64_t bias_;  // where it begins, in full numbers from the weights on as they are stored
  std::span<std::byte> workspace_;
  WeightStrides strides_;  // of the outputs' sums
  Windows windows_;
  std::vector<Windows> grids_;  // of the inputs' gradients
};

}  // namespace carousel::blocked
