// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/convolution/op.hpp"

#include <fmt/core.h>

#include "core/base/align.hpp"
#include "core/model/op.hpp"
#include "core/model/workspace.hpp"
#include "layers/batch_norm/op.hpp"

namespace carousel {

ConvolutionMemory convolution_memory(const LayerSpec& layer, int n) {
  constexpr std::int64_t vector_bytes = 16;
  const auto& convolution = layer.as<op::Convolution>();
  const DataType type = layer.output_format.type;
  const SampleShape& input = layer.input();
  const bool reads_images = layer.inputs.front().format.block == 1;
  ConvolutionMemory memory = {};
  memory.channels =
      static_cast<int>(align_up(input.channels, reads_images ? vector_bytes / size_of(type) : 1));
  const std::int64_t taps = convolution.window.taps();
  const std::int64_t weights =
      layer.output.channels * taps * memory.channels * std::int64_t{sizeof(real)};
  const std::int64_t images = n * input.pixels() * memory.channels * size_of(type);
  memory.library = graph_workspace;
  if (type == DataType::full)
    memory.library += align_up(images + n * layer.output.size() * size_of(type) + weights);
  memory.sums = memory.library;
  memory.weights = memory.sums + (convolution.normalises ? norm_workspace : 0);
  memory.images = memory.weights + align_up(weights);
  memory.end = memory.images + align_up(images);
  return memory;
}

namespace ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& around) {
  Window window = window_of(arguments, around);
  window.dilation = arguments.whole("dilation");
  const int channels = arguments.whole("channels");
  const int groups = arguments.whole("groups");
  check_groups(groups, layer.input().channels, channels);
  layer.attributes = op::Convolution{.window = window, .groups = groups};
  const std::int64_t in = layer.input().channels / groups;
  const std::int64_t area = window.taps();
  layer.output = behind_window(layer, channels, window, around);
  layer.parameters = {
      {layer.name + ".weight", window.weights(channels, in), lecun_uniform(in * area)}};
  const double product = 2.0 * static_cast<double>(in * area * layer.output.size());
  layer.forward_flops = product;
  layer.backward_flops = (around.learns ? 2 : 1) * product;
  if (arguments.flag("bias")) {
    layer.parameters.push_back({layer.name + ".bias", {channels}, lecun_uniform(in * area)});
    layer.forward_flops += static_cast<double>(layer.output.size());
    layer.backward_flops += static_cast<double>(layer.output.size());
  }
  layer.saves_input = true;
}

/// Whether it reads images as files have them, which kernels of other orders take as they are, too,
/// and find no gradient of.
bool reads_images(const LayerSpec& layer) {
  return layer.inputs[0].layer < 0 && layer.inputs[0].format == TensorFormat{};
}

/// Whether it is stored in one type, but for images as files have them.
bool has_types_of_blocks(const LayerSpec& layer) {
  return reads_images(layer) ? layer.weights().type == layer.output_format.type
                             : has_one_type(layer);
}

/// What fills no blocks; empty where all does. What is read in plain order need not.
std::string odd_tensors(const LayerSpec& layer, const KernelChoice& choice) {
  std::string odd = odd_channels(layer.output.channels, choice);
  if (odd.empty() && !reads_images(layer)) odd = odd_channels(layer.input().channels, choice);
  return odd;
}

/// What all kernels but the portable ones ask for.
bool is_common(const op::Convolution& convolution) {
  return convolution.window.is_simple() && convolution.groups == 1;
}

/// A window of its own for each channel.
bool is_depthwise(const LayerSpec& layer) {
  const auto& convolution = layer.as<op::Convolution>();
  return convolution.groups > 1 && convolution.groups == layer.input().channels &&
         convolution.groups == layer.output.channels && !convolution.normalises &&
         convolution.window.axes < 3 && convolution.window.taps() <= most_depthwise_taps;
}

/// Of images whose channels lie side by side, but for those of files.
bool is_of_vendor(const LayerSpec& layer, const KernelChoice& choice) {
  if (!is_common(layer.as<op::Convolution>())) return false;
  const LayerInput& input = layer.inputs.front();
  const bool has_no_bias = layer.parameters.back().shape.size() > 1;
  return wants_channels_last(choice.vendor) && has_no_bias &&
         layer.as<op::Convolution>().window.axes == 2 && odd_tensors(layer, choice).empty() &&
         lies_in_blocks(layer.output, layer.output_format, layer.output.channels) &&
         (reads_images(layer) || (lies_in_blocks(input.shape, input.format, input.shape.channels) &&
                                  input.format.type == layer.output_format.type));
}

std::string fit(LayerSpec& layer, const KernelChoice& choice) {
  auto convolution = layer.as<op::Convolution>();
  layer.saves_input = true;
  layer.normalises_samples = convolution.normalises;
  if (convolution.normalises) layer.saved = {norm_statistics(layer)};
  convolution.winograd = false;
  layer.attributes = convolution;
  if (is_of_vendor(layer, choice)) {
    layer.kernels = Kernels::vendor;
    layer.workspace = {
        per_sample(convolution_memory(layer, 0).end, convolution_memory(layer, 1).end)};
    return "";
  }
  const bool blocked_input =
      lies_in_blocks(layer.input(), layer.inputs[0].format, std::max(1, choice.block));
  if (choice.blocks() && is_common(convolution) && has_types_of_blocks(layer) &&
      lies_in_blocks(layer.output, layer.output_format, choice.block) &&
      (blocked_input || (reads_images(layer) && !convolution.normalises))) {
    const bool has_bias = layer.parameters.back().shape.size() == 1;
    convolution.winograd =
        choice.winograd && convolution.window == Window{3, 1, 1} && blocked_input && !has_bias;
    layer.attributes = convolution;
    layer.kernels = Kernels::blocked;
    layer.workspace = convolution.winograd ? winograd_workspace(layer, choice.block)
                                           : direct_workspace(layer, choice.block);
    if (convolution.normalises) layer.workspace.push_back(norm_sums(layer));
    return "";
  }
  if (is_depthwise(layer) && is_blocked(layer, choice)) {
    layer.kernels = Kernels::blocked;
    layer.workspace = {depthwise_sums(layer)};
    return "";
  }
  if (wants_channels_last(choice.vendor) && convolution.window.axes == 3)
    layer.slow_because = "volumes";
  else if (choice.block != 1)
    layer.slow_because = is_common(convolution) || is_depthwise(layer)
                             ? odd_tensors(layer, choice)
                             : "groups, dilation or one axis";
  if (convolution.normalises) return "it is fused with others";
  return fit_portable(layer);
}

std::string describe(const LayerSpec& layer) {
  const auto& convolution = layer.as<op::Convolution>();
  return fmt::format("{}{}", convolution.normalises ? "norm+relu+" : "",
                     convolution.winograd ? "winograd" : "convolution");
}

}  // namespace

/// torch.nn.Conv2d with square windows, Conv3d with cubes, or Conv1d
Op convolution() {
  std::vector<ArgumentSpec> arguments = convolution_arguments();
  arguments.push_back({.name = "bias", .otherwise = 1, .most = 1});
  return {.name = "convolution",
          .deck_word = "conv",
          .arguments = arguments,
          .size = "channels",
          .infer = infer,
          .fit = fit,
          .fusions = {norm_in_front_of<op::Convolution>("convolution")},
          .describe = describe,
          .of_vendor = "convolution",
          .by_graph = true};
}

}  // namespace ops
}  // namespace carousel
