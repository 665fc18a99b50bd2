// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The loss of a classifier, torch.nn.CrossEntropyLoss (mean): turns logits into probabilities and
// fills the metrics of the micro-batch. It knows class indices, not class weights or smoothing.

#include "core/train/layer.hpp"

namespace carousel {

class SoftmaxCrossEntropy final : public Layer {
 public:
  explicit SoftmaxCrossEntropy(const LayerSpec& spec) : classes_(spec.input.channels) {}

  /// Probabilities take the place of the logits; loss and counts go to `arguments.metrics`.
  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  /// d_input = (probabilities - one at the label) / n; may overwrite the probabilities.
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  int classes_;
};

}  // namespace carousel
