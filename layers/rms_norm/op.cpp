// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/rms_norm/op.hpp"

// torch.nn.RMSNorm of the features of each token (Zhang & Sennrich 2019, arXiv 1910.07467).

#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& /*around*/) {
  layer.attributes = op::RmsNorm{arguments.number("epsilon")};
  layer.parameters = {{layer.name + ".weight", {layer.input().channels}, ones()}};
  // Per number; forward: mean square 2, result 2; backward: two sums 6, result 5.
  infer_from_input(layer, 4, 11);
}

std::string fit(LayerSpec& layer, const KernelChoice& choice) {
  layer.saved = {{"statistics", {0, layer.input().pixels() * std::int64_t{sizeof(real)}}, true}};
  return fit_in_any_order(layer, choice);
}

}  // namespace

Op rms_norm() {
  return {.name = "rms_norm",
          .arguments = {epsilon_argument(op::RmsNorm{}.epsilon)},
          .infer = infer,
          .fit = fit};
}

}  // namespace carousel::ops
