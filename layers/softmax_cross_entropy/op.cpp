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

std::string fit(LayerSpec& layer, const KernelChoice& choice) {
  std::string reason = fit_loss(layer, choice);
  const std::int64_t pixels = layer.target.pixels();
  if (!reason.empty() || pixels == 1) return reason;
  layer.saved.push_back({.name = "sums", .bytes = {0, 2 * pixels * std::int64_t{sizeof(real)}}});
  layer.workspace = {{0, pixels * std::int64_t{sizeof(double)}}};
  return "";
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
          .fit = fit,
          .loss = LossFacts{.name = "cross-entropy",
                            .doc = "minus the logarithm of the label's share in the softmax of the "
                                   "outputs.",
                            .metrics = {"accuracy"},
                            .takes_weights = true}};
}

}  // namespace carousel::ops
