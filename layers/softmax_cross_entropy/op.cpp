// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/softmax_cross_entropy/op.hpp"

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& around) {
  layer.attributes = op::SoftmaxCrossEntropy{arguments.number("label_smoothing")};
  infer_loss(layer, 5, 2, around);
}

}  // namespace

/// torch.nn.CrossEntropyLoss of class indices
Op softmax_cross_entropy() {
  return {.name = "softmax_cross_entropy",
          .arguments = {{.name = "label_smoothing",
                         .otherwise = 0,
                         .least = 0,
                         .most = 1,
                         .whole = false,
                         .doc = "Share of the target that is spread evenly over all classes. "
                                "Evaluation does not smooth.",
                         .former = "train.label_smoothing"}},
          .infer = infer,
          .fit = fit_loss,
          .loss = LossFacts{.name = "cross-entropy",
                            .doc = "minus the logarithm of the label's share in the softmax of the "
                                   "outputs.",
                            .metrics = {"accuracy"},
                            .takes_weights = true}};
}

}  // namespace carousel::ops
