// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/softmax_cross_entropy/op.hpp"

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

/// Backward needs the logits, which stay where they are.
void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& /*around*/) {
  layer.attributes = op::SoftmaxCrossEntropy{arguments.number("smoothing")};
  layer.output = layer.input();
  layer.forward_flops = 5.0 * layer.input().channels;
  layer.backward_flops = 2.0 * layer.input().channels;
  layer.saves_output = true;
  layer.in_place = true;
  layer.is_loss = true;
  layer.metrics = {&metric_named("accuracy")};
}

std::string fit(LayerSpec& layer, const KernelChoice& /*choice*/) {
  return is_plain(layer) ? "" : "it computes in plain order";
}

}  // namespace

/// torch.nn.CrossEntropyLoss of class indices
Op softmax_cross_entropy() {
  return {
      .name = "softmax_cross_entropy",
      .arguments = {{.name = "smoothing", .otherwise = 0, .least = 0, .most = 1, .whole = false}},
      .infer = infer,
      .fit = fit};
}

}  // namespace carousel::ops
