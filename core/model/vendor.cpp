// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/vendor.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/align.hpp"
#include "core/base/version.hpp"

namespace carousel {
namespace {

/// Features of a sample, or of each token, side by side.
bool has_rows(const SampleShape& shape, const TensorFormat& format) {
  return shape.width == 1 && (shape.height == 1 || format.block == shape.channels);
}

bool is_product(const LayerSpec& layer) {
  const TensorFormat& input = layer.inputs.front().format;
  const TensorFormat& output = layer.output_format;
  return layer.is<kind::Linear>() && layer.parameters.size() == 2 && input.type == output.type &&
         layer.weights().type == output.type && has_rows(layer.input(), input) &&
         has_rows(layer.output, output);
}

/// Of images whose channels lie side by side, but for those of files.
bool is_convolution(const LayerSpec& layer) {
  const TensorFormat& input = layer.inputs.front().format;
  const bool reads_images = input.block == 1 && input.type == DataType::full;
  return layer.is<kind::Convolution>() && layer.parameters.back().shape.size() == 4 &&
         layer.output_format.block == layer.output.channels &&
         (reads_images ||
          (input.block == layer.input().channels && input.type == layer.output_format.type));
}

bool has_one_type(const LayerSpec& layer) {
  return layer.inputs.front().format.type == layer.output_format.type;
}

/// Of patches of images, whose bias has an order of its own behind the weights.
bool is_patch_product(const LayerSpec& layer) {
  return layer.is<kind::PatchEmbedding>() && layer.inputs.front().format == TensorFormat{} &&
         layer.output_format.block == layer.output.channels;
}

bool is_attention(const LayerSpec& layer) {
  return layer.is<kind::Attention>() && layer.output_format.type == DataType::bfloat16 &&
         has_one_type(layer) && layer.output_format.block == layer.output.channels &&
         layer.inputs.front().format.block == layer.input().channels;
}

/// Room for a bias in the type of the result.
std::int64_t bias_bytes(const LayerSpec& layer) {
  return align_up(2 * std::int64_t{layer.output.channels});
}

/// What n samples need at most, where none and one need so much and each part is aligned.
SampleBytes per_sample(std::int64_t none, std::int64_t one) {
  return {none, align_up(one - none)};
}

/// Why layers that libraries compute are left to us.
std::string left_because(VendorKernels kernels) {
  if (kernels == VendorKernels::none)
    return build_info().kernels.empty() ? "this program was built without cuBLASLt"
                                        : "engine.vendor is \"none\"";
  if (kernels == VendorKernels::products) return "this program was built without cuDNN";
  if (!wants_channels_last(kernels)) return "cuDNN is not used in double precision";
  return "cuDNN has it in bf16 alone, see engine.precision";
}

bool takes_channels_last(const LayerSpec& layer) {
  if (layer.is<kind::BatchNorm>() || layer.is<kind::LayerNorm>() || layer.is<kind::FirstToken>() ||
      layer.is<kind::Attention>())
    return true;
  if (layer.is<kind::MaxPool>()) return !layer.as<kind::MaxPool>().normalises;
  return layer.is<kind::AveragePool>() && layer.as<kind::AveragePool>().window.kernel == 0;
}

}  // namespace

VendorKernels built_kernels() {
  if (build_info().kernels.empty()) return VendorKernels::none;
  return build_info().graphs.empty() ? VendorKernels::products : VendorKernels::graphs;
}

void choose_channels_last(LayerSpec& layer) {
  layer.native = takes_channels_last(layer);
  if (layer.is<kind::BatchNorm>() || layer.is<kind::LayerNorm>())
    layer.workspace = {{norm_workspace, 0}};
}

ConvolutionMemory convolution_memory(const LayerSpec& layer, int n) {
  constexpr std::int64_t vector_bytes = 16;
  const auto& kind = layer.as<kind::Convolution>();
  const DataType type = layer.output_format.type;
  const SampleShape& input = layer.input();
  const bool reads_images = layer.inputs.front().format.block == 1;
  ConvolutionMemory memory = {};
  memory.channels =
      static_cast<int>(align_up(input.channels, reads_images ? vector_bytes / size_of(type) : 1));
  const std::int64_t taps = std::int64_t{kind.window.kernel} * kind.window.kernel;
  const std::int64_t weights =
      layer.output.channels * taps * memory.channels * std::int64_t{sizeof(real)};
  const std::int64_t images =
      std::int64_t{n} * input.height * input.width * memory.channels * size_of(type);
  memory.library = graph_workspace;
  if (type == DataType::full)
    memory.library += align_up(images + n * layer.output.size() * size_of(type) + weights);
  memory.sums = memory.library;
  memory.weights = memory.sums + (kind.normalises ? norm_workspace : 0);
  memory.images = memory.weights + align_up(weights);
  memory.end = memory.images + align_up(images);
  return memory;
}

std::int64_t attention_gradient_bytes(const LayerSpec& layer) {
  return layer.input().size() * size_of(layer.output_format.type);
}

PatchMemory patch_memory(const LayerSpec& layer, int n) {
  const std::int64_t type_bytes = size_of(layer.output_format.type);
  PatchMemory memory = {};
  memory.rows = product_workspace + bias_bytes(layer);
  memory.products = memory.rows + align_up(n * layer.input().size() * type_bytes);
  memory.end = memory.products + align_up(n * layer.output.size() * type_bytes);
  return memory;
}

void choose_vendor(LayerSpec& layer, VendorKernels kernels) {
  if (kernels == VendorKernels::none) return;
  if (is_product(layer)) {
    layer.native = layer.by_vendor = true;
    layer.workspace = {{product_workspace + bias_bytes(layer), 0}};
  } else if (is_patch_product(layer)) {
    layer.native = layer.by_vendor = true;
    layer.workspace = {per_sample(patch_memory(layer, 0).end, patch_memory(layer, 1).end)};
  } else if (wants_channels_last(kernels) && is_convolution(layer)) {
    layer.native = layer.by_vendor = true;
    layer.workspace = {
        per_sample(convolution_memory(layer, 0).end, convolution_memory(layer, 1).end)};
  } else if (wants_channels_last(kernels) && is_attention(layer)) {
    layer.native = layer.by_vendor = true;
    const std::int64_t heads = layer.as<kind::Attention>().heads;
    const std::int64_t tokens = layer.output.height;
    layer.saves_output = true;
    layer.saved = {{"log_sums", {0, heads * tokens * std::int64_t{sizeof(real)}}}};
    // Gradients that have the same bits every time want all scores' at once, in bf16 and whole
    // tiles; sums of queries' gradients are full. Behind that, gradients that are added.
    constexpr std::int64_t tile = 128;
    const std::int64_t scores = 2 * heads * align_up(tokens, tile) * align_up(tokens, tile);
    const std::int64_t sums = 2 * layer.output.size() * std::int64_t{sizeof(real)};
    layer.workspace = {{graph_workspace, scores + sums + attention_gradient_bytes(layer)}};
  }
}

std::string vendor_layers(const Model& model) {
  const auto by_graph = [](const LayerSpec& layer) {
    return layer.is<kind::Convolution>() || layer.is<kind::Attention>();
  };
  const auto count = [&](bool graphs) {
    return std::ranges::count_if(model.layers, [&](const LayerSpec& layer) {
      return layer.by_vendor && by_graph(layer) == graphs;
    });
  };
  const std::ptrdiff_t graphs = count(true);
  const std::ptrdiff_t products = count(false);
  std::string text;
  if (graphs > 0) text += fmt::format("{} by cuDNN", graphs);
  if (products > 0) text += fmt::format("{}{} by cuBLASLt", graphs > 0 ? ", " : "", products);
  return text;
}

std::string slow_kernels(const Model& model, VendorKernels kernels, bool on_gpu) {
  if (!model.portable_because.empty() || !on_gpu) return model.portable_because;
  std::string text;
  const auto count = [&](const char* what, const auto& is_one) {
    const auto left = std::ranges::count_if(
        model.layers, [&](const LayerSpec& layer) { return is_one(layer) && !layer.by_vendor; });
    if (left == 0) return;
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", left, what, left == 1 ? "" : "s");
  };
  count("convolution", [](const LayerSpec& layer) { return layer.is<kind::Convolution>(); });
  count("attention", [](const LayerSpec& layer) { return layer.is<kind::Attention>(); });
  count("linear layer", [](const LayerSpec& layer) {
    return layer.is<kind::Linear>() || layer.is<kind::PatchEmbedding>();
  });
  if (text.empty()) return {};
  return fmt::format("{} by our own: {}", text, left_because(kernels));
}

bool may_be_slow(const LayerSpec& layer) {
  return layer.by_vendor && layer.is<kind::Convolution>() &&
         layer.output_format.type == DataType::bfloat16;
}

}  // namespace carousel
