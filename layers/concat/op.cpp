// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// torch.cat over channels: those of the first input, then those of the second one.

#include "core/model/op.hpp"
#include "core/base/check.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  const SampleShape& first = layer.input();
  const SampleShape& second = layer.inputs[1].shape;
  if (first.with_channels(1) != second.with_channels(1))
    fail(ExitCode::usage, "concat joins {} and {}", to_string(first), to_string(second));
  layer.output = first;
  layer.output.channels += second.channels;
}

/// Where blocks are filled, those of one input follow those of the other.
std::string fit(LayerSpec& layer, const KernelChoice& choice) {
  const DataType type = layer.output_format.type;
  const auto is_of_type = [&](const LayerInput& input) { return input.format.type == type; };
  if (!is_of_type(layer.inputs[0]) || !is_of_type(layer.inputs[1]))
    return "its tensors are of different types";
  if (is_plain(layer) || is_channels_last(layer, choice)) return "";
  const int block = layer.output_format.block;
  const auto fills = [&](const LayerInput& input) {
    return lies_in_blocks(input.shape, input.format, block);
  };
  if (fills(layer.inputs[0]) && fills(layer.inputs[1])) return "";
  return "its tensors fill no blocks of one size";
}

}  // namespace

Op concat() {
  return {.name = "concat", .joins = true, .infer = infer, .fit = fit};
}

}  // namespace carousel::ops
