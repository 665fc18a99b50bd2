// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// torch.nn.Linear, of features or of every token.

#include "core/model/op.hpp"
#include "core/base/check.hpp"
#include "core/model/workspace.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& around) {
  const int features = arguments.whole("features");
  const int in = layer.input().channels;
  if (layer.input().width > 1 || layer.input().depth > 1)
    fail(ExitCode::usage,
         "linear takes features or tokens, not images of {}; put a flatten before it",
         to_string(layer.input()));
  layer.output = layer.input();
  layer.output.channels = features;
  // torch.nn.MultiheadAttention has a linear layer that is no module of its own.
  const char* separator = layer.name.ends_with("in_proj") ? "_" : ".";
  layer.parameters = {{layer.name + separator + "weight", {features, in}, lecun_uniform(in)}};
  const bool has_bias = arguments.flag("bias");
  if (has_bias)
    layer.parameters.push_back({layer.name + separator + "bias", {features}, lecun_uniform(in)});
  const auto outputs = static_cast<double>(layer.output.size());
  const double product = 2.0 * in * outputs;
  const double shifts = has_bias ? outputs : 0;
  layer.forward_flops = product + shifts;
  layer.backward_flops = (around.learns ? 2 : 1) * product + shifts;
  layer.saves_input = true;
}

/// Features of a sample, or of each token, side by side.
bool has_rows(const SampleShape& shape, const TensorFormat& format) {
  return shape.pixels() == 1 || (shape.pixels() == shape.height && format.block == shape.channels);
}

bool is_of_vendor(const LayerSpec& layer, const KernelChoice& choice) {
  const TensorFormat& input = layer.inputs.front().format;
  const TensorFormat& output = layer.output_format;
  return choice.vendor != VendorKernels::none && layer.parameters.size() == 2 &&
         input.type == output.type && layer.weights().type == output.type &&
         has_rows(layer.input(), input) && has_rows(layer.output, output);
}

std::string fit(LayerSpec& layer, const KernelChoice& choice) {
  if (is_of_vendor(layer, choice)) {
    layer.kernels = Kernels::vendor;
    layer.workspace = {{product_workspace + bias_bytes(layer), 0}};
    return "";
  }
  const bool has_tokens = layer.input().pixels() > 1;
  if (has_tokens && is_blocked(layer, choice)) {
    layer.kernels = Kernels::blocked;
    layer.workspace = direct_workspace(layer, choice.block);
    return "";
  }
  if (has_tokens && choice.block != 1)
    layer.slow_because = odd_channels(layer.output.channels, choice);
  if (has_tokens && choice.block != 1 && layer.slow_because.empty())
    layer.slow_because = odd_channels(layer.input().channels, choice);
  return fit_portable(layer);
}

}  // namespace

Op linear() {
  return {
      .name = "linear",
      .arguments = {{.name = "features", .least = 1}, {.name = "bias", .otherwise = 1, .most = 1}},
      .infer = infer,
      .fit = fit,
      .of_vendor = "linear layer"};
}

}  // namespace carousel::ops
