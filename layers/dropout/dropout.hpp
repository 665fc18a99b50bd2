// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Dropout, torch.nn.Dropout (Srivastava et al. 2014), of numbers or of whole samples, in place.
// What it drops is a pure function of seed, epoch, sample and layer, so that backward draws it
// again and nothing is kept.

#include <string>

#include "core/engine/layer.hpp"

namespace carousel {

/// Drops number k of a sample, in the order [c, h, w] whatever blocks it lies in, when
/// u < probability, with u = uniform01(random_key(seed, "dropout
/// NAME"), epoch 2^32 + sample, k) of core/base/random.hpp, and scales the others by
/// 1 / (1 - probability). Of whole samples, number 0 stands for all, and the purpose is "stochastic
/// depth NAME".
class Dropout final : public Layer {
 public:
  explicit Dropout(const LayerSpec& spec);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  template <class Stored>
  void drop(const ExecutionSpace& exec, const std::string& label, const Draw& draw,
            const ConstTensor& from, const Tensor& to, bool adds) const;

  double probability_;
  bool of_samples_;
  TensorFormat format_;  // channels side by side
  std::uint64_t purpose_;
  std::string forward_label_;
  std::string backward_label_;
};

}  // namespace carousel
