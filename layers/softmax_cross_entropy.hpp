// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The loss of a classifier, torch.nn.CrossEntropyLoss (mean): turns logits into probabilities and
// fills the metrics of the micro-batch. It knows class indices, not class weights.

#include "core/engine/layer.hpp"

namespace carousel {

class SoftmaxCrossEntropy final : public Layer {
 public:
  explicit SoftmaxCrossEntropy(const LayerSpec& spec)
      : classes_(spec.input().channels),
        smoothing_(spec.as<kind::SoftmaxCrossEntropy>().smoothing) {}

  /// Probabilities take the place of the logits; loss and counts go to `arguments.metrics`. In
  /// training, all classes share the smoothing of the target (Szegedy et al. 2016); evaluation
  /// reports the plain loss.
  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  /// d_input = (probabilities - target) / n; may overwrite the probabilities.
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  int classes_;
  double smoothing_;
};

}  // namespace carousel
