// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Instance normalisation (Ulyanov et al. 2016, arXiv 1607.08022): a group norm whose groups are the
// channels. By itself it has no parameters, as PyTorch's.

#include "core/model/op.hpp"
#include "core/base/check.hpp"
#include "layers/group_norm/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& /*around*/) {
  const int channels = layer.input().channels;
  const bool is_affine = arguments.flag("affine");
  layer.attributes = op::GroupNorm{
      .groups = channels, .epsilon = arguments.number("epsilon"), .is_affine = is_affine};
  if (layer.input().size() == channels)
    fail(ExitCode::usage, "{}: each channel of {} is one number, of which nothing is left",
         layer.label(), to_string(layer.input()));
  if (is_affine) layer.parameters = channel_parameters(layer);
  infer_from_input(layer, 7, 9);  // as of a group norm
}

std::string fit(LayerSpec& layer, const KernelChoice& choice) {
  return op_named("group_norm").fit(layer, choice);
}

}  // namespace

/// torch.nn.InstanceNorm2d, and InstanceNorm1d where samples have one axis
Op instance_norm() {
  return {.name = "instance_norm",
          .arguments = {{.name = "affine", .otherwise = 0, .most = 1},
                        epsilon_argument(op::GroupNorm{}.epsilon)},
          .infer = infer,
          .fit = fit};
}

}  // namespace carousel::ops
