// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The loss of a classifier, torch.nn.CrossEntropyLoss (mean): reads logits in the type that they
// are stored in, computes in full numbers and reports the loss of the micro-batch. It knows class
// indices, not class weights.

#include "core/engine/layer.hpp"
#include "layers/softmax_cross_entropy/op.hpp"

namespace carousel {

class SoftmaxCrossEntropy final : public Layer {
 public:
  explicit SoftmaxCrossEntropy(const LayerSpec& spec)
      : classes_(spec.input().channels),
        smoothing_(spec.as<op::SoftmaxCrossEntropy>().smoothing),
        type_(spec.inputs.front().format.type) {}

  /// Leaves the logits as they are; the loss goes to `arguments.report`. In training, all
  /// classes share the smoothing of the target (Szegedy et al. 2016); evaluation reports the plain
  /// loss.
  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  /// d_input = (softmax(logits) - target) / n; may overwrite the logits. Where these are bf16, the
  /// entry of the label is minus the sum of the others.
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  int classes_;
  double smoothing_;
  DataType type_;
};

}  // namespace carousel
