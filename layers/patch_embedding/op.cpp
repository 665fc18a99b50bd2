// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/patch_embedding/op.hpp"

#include <cmath>

#include "core/base/align.hpp"
#include "core/base/check.hpp"
#include "core/model/op.hpp"
#include "core/model/workspace.hpp"
#include "layers/convolution/op.hpp"

namespace carousel {

PatchMemory patch_memory(const LayerSpec& layer, int n) {
  const std::int64_t type_bytes = size_of(layer.output_format.type);
  PatchMemory memory = {};
  memory.rows = product_workspace + bias_bytes(layer);
  memory.products = memory.rows + align_up(n * layer.input().size() * type_bytes);
  memory.end = memory.products + align_up(n * layer.output.size() * type_bytes);
  return memory;
}

LayerSpec convolution_of_patches(const LayerSpec& layer) {
  const Window& window = layer.as<op::PatchEmbedding>().window;
  LayerSpec convolution;
  convolution.kind = &op_named("convolution");
  convolution.attributes = op::Convolution{window};
  convolution.name = layer.name;
  convolution.inputs = layer.inputs;
  convolution.output = {layer.output.channels, layer.input().height / window.kernel,
                        layer.input().width / window.kernel};
  convolution.output_format = layer.output_format;
  convolution.parameters = {layer.weights()};
  return convolution;
}

namespace ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& around) {
  if (around.learns)
    fail(ExitCode::usage,
         "patch_embedding {}: it is for images; what comes from layers that learn "
         "would find no gradient",
         layer.name);
  const int features = arguments.whole("features");
  const int patch = arguments.whole("patch");
  layer.attributes = op::PatchEmbedding{{patch, patch, 0}};
  const SampleShape& image = layer.input();
  if (image.depth > 1)
    fail(ExitCode::usage, "patch_embedding takes images, not volumes of {}", to_string(image));
  if (image.height % patch != 0 || image.width % patch != 0)
    fail(ExitCode::usage, "data.file: images of {} are not made of whole patches; model.patch = {}",
         to_string(image), patch);
  const int patches = (image.height / patch) * (image.width / patch);
  const std::int64_t in = image.channels;
  const std::int64_t taps = in * patch * patch;
  layer.output = {features, patches + 1, 1};
  layer.parameters = {{"class_token", {1, 1, features}, zeros()},
                      {layer.name + ".weight",
                       {features, in, patch, patch},
                       normal(std::sqrt(1 / static_cast<double>(taps)))},
                      {layer.name + ".bias", {features}, zeros()},
                      {"encoder.pos_embedding", {1, patches + 1, features}, normal(0.02)}};
  const double product = 2.0 * static_cast<double>(taps) * patches * features;
  const auto outputs = static_cast<double>(layer.output.size());
  layer.forward_flops = product + 2 * outputs;
  layer.backward_flops = product + 2 * outputs;
  layer.saves_input = true;
}

std::string fit(LayerSpec& layer, const KernelChoice& choice) {
  const bool reads_plain = layer.inputs[0].format == TensorFormat{};
  // A bias has an order of its own behind the weights.
  if (choice.vendor != VendorKernels::none && reads_plain && choice.channels_last() &&
      odd_channels(layer.output.channels, choice).empty() &&
      lies_in_blocks(layer.output, layer.output_format, layer.output.channels)) {
    layer.kernels = Kernels::vendor;
    layer.workspace = {per_sample(patch_memory(layer, 0).end, patch_memory(layer, 1).end)};
    return "";
  }
  if (choice.blocks() && reads_plain && has_full_numbers(layer) &&
      lies_in_blocks(layer.output, layer.output_format, choice.block)) {
    layer.kernels = Kernels::blocked;
    layer.workspace = direct_workspace(layer, choice.block);
    return "";
  }
  if (choice.block != 1) layer.slow_because = odd_channels(layer.output.channels, choice);
  return fit_portable(layer);
}

}  // namespace

/// What a vision transformer begins with; names are torchvision's.
Op patch_embedding() {
  return {.name = "patch_embedding",
          .arguments = {{.name = "features", .least = 1}, {.name = "patch", .least = 1}},
          .infer = infer,
          .fit = fit,
          .of_vendor = "linear layer"};
}

}  // namespace ops
}  // namespace carousel
