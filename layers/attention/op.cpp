// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/attention/op.hpp"

#include <fmt/core.h>

#include "core/base/align.hpp"
#include "core/base/check.hpp"
#include "core/model/op.hpp"
#include "core/model/workspace.hpp"

namespace carousel {

std::int64_t attention_gradient_bytes(const LayerSpec& layer) {
  return layer.input().size() * size_of(layer.output_format.type);
}

namespace ops {
namespace {

/// Products of rows and columns of tokens: two forward; backward the scores again and four more.
/// Causal ones have those of each token with itself and all before it.
void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& /*around*/) {
  const int heads = arguments.whole("heads");
  const bool causal = arguments.flag("causal");
  layer.attributes = op::Attention{heads, causal};
  const SampleShape& shape = layer.input();
  if (shape.channels % (3 * heads) != 0)
    fail(
        ExitCode::usage,
        "{} heads of {}: channels are queries, keys and values, a multiple of 3 x {}; put a linear "
        "layer with so many before it",
        heads, to_string(shape), heads);
  layer.output = shape;
  layer.output.channels = shape.channels / 3;
  const auto tokens = static_cast<double>(shape.pixels());
  const double read = causal ? (tokens + 1) / 2 : tokens;  // by a token, on average
  const double product = 2.0 * read * static_cast<double>(layer.output.size());
  layer.forward_flops = 2 * product;
  layer.backward_flops = 5 * product;
  layer.saves_input = true;
}

/// What of a head fills no blocks; empty where all is well.
std::string odd_heads(const LayerSpec& layer, const KernelChoice& choice) {
  constexpr int most_of_head = 128;  // that cuDNN's attention has kernels for
  const int features = layer.output.channels / layer.as<op::Attention>().heads;
  if (features % filled_block(choice) != 0)
    return fmt::format("{} features per head, no multiple of {}", features, filled_block(choice));
  if (choice.channels_last() && features > most_of_head)
    return fmt::format("{} features per head, more than {}", features, most_of_head);
  return "";
}

std::string fit(LayerSpec& layer, const KernelChoice& choice) {
  layer.saves_output = false;
  const std::int64_t heads = layer.as<op::Attention>().heads;
  const std::int64_t tokens = layer.output.pixels();
  const std::string odd = choice.block == 1 ? "" : odd_heads(layer, choice);
  const bool in_bf16 = layer.output_format.type == DataType::bfloat16 &&
                       layer.inputs[0].format.type == DataType::bfloat16;
  if (wants_channels_last(choice.vendor) && in_bf16 && odd.empty() &&
      is_channels_last(layer, choice)) {
    layer.kernels = Kernels::vendor;
    layer.saves_output = true;
    layer.saved = {{"log_sums", {0, heads * tokens * std::int64_t{sizeof(real)}}}};
    // Gradients that have the same bits every time want all scores' at once, in bf16 and whole
    // tiles; sums of queries' gradients are full. Behind that, gradients that are added.
    constexpr std::int64_t tile = 128;
    const std::int64_t scores = 2 * heads * align_up(tokens, tile) * align_up(tokens, tile);
    const std::int64_t sums = 2 * layer.output.size() * std::int64_t{sizeof(real)};
    layer.workspace = {{graph_workspace, scores + sums + attention_gradient_bytes(layer)}};
    return "";
  }
  if (odd.empty() && is_blocked(layer, choice)) {
    layer.kernels = Kernels::blocked;
    return "";
  }
  layer.slow_because = odd;
  layer.workspace = {{0, 2 * heads * tokens * std::int64_t{sizeof(real)}}};
  if (has_full_numbers(layer) && is_channels_last(layer, choice)) return "";
  return fit_portable(layer);
}

}  // namespace

/// The middle of torch.nn.MultiheadAttention, without its two linear layers; causal as
/// torch.nn.functional.scaled_dot_product_attention with is_causal.
Op attention() {
  return {
      .name = "attention",
      .arguments = {{.name = "heads", .least = 1}, {.name = "causal", .otherwise = 0, .most = 1}},
      .infer = infer,
      .fit = fit,
      .of_vendor = "attention",
      .by_graph = true};
}

}  // namespace ops
}  // namespace carousel
