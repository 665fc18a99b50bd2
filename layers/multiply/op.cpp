// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/multiply/op.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

using op::Spread;

/// Of a factor, or nothing where it does not spread over the product.
std::optional<Spread> spread_of(const SampleShape& factor, const SampleShape& product) {
  if (factor == product) return Spread::number;
  if (factor == SampleShape{product.channels}) return Spread::channel;
  if (factor == product.with_channels(1)) return Spread::pixel;
  return {};
}

void infer(LayerSpec& layer, const GivenArguments& /*arguments*/, const Surroundings& /*around*/) {
  const SampleShape& first = layer.input();
  const SampleShape& second = layer.inputs[1].shape;
  layer.output = {std::max(first.channels, second.channels), std::max(first.height, second.height),
                  std::max(first.width, second.width), std::max(first.depth, second.depth)};
  op::Multiply multiply;
  for (std::size_t k = 0; k < 2; ++k) {
    const std::optional<Spread> spread = spread_of(layer.inputs[k].shape, layer.output);
    if (!spread)
      fail(
          ExitCode::usage,
          "multiply multiplies {} and {}: both must be alike, or one of them have one pixel or one "
          "channel",
          to_string(first), to_string(second));
    multiply.spreads[k] = *spread;
  }
  layer.attributes = multiply;
  const auto size = static_cast<double>(layer.output.size());
  layer.forward_flops = size;
  // A gradient that is spread is a sum.
  const bool sums = multiply.spreads != std::array{Spread::number, Spread::number};
  layer.backward_flops = (sums ? 3 : 2) * size;
  layer.saves_input = layer.saves_second = true;
}

/// One number for each channel lies the same in any order.
std::string fit(LayerSpec& layer, const KernelChoice& /*choice*/) {
  const TensorFormat& product = layer.output_format;
  for (std::size_t k = 0; k < 2; ++k) {
    const LayerInput& factor = layer.inputs[k];
    if (factor.format.type != product.type) return "its tensors are of different types";
    if (layer.as<op::Multiply>().spreads[k] == Spread::number && factor.format != product)
      return "its tensors lie in different orders";
    if (!lies_in_blocks(factor.shape, factor.format, factor.format.block))
      return "its tensors fill no blocks";
  }
  return lies_in_blocks(layer.output, product, product.block) ? "" : "its tensors fill no blocks";
}

}  // namespace

/// torch.mul
Op multiply() {
  return {.name = "multiply", .joins = true, .infer = infer, .fit = fit};
}

}  // namespace carousel::ops
