// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/op.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/check.hpp"
#include "core/model/model.hpp"

namespace carousel {
namespace {

template <class Holds>
bool all_tensors(const LayerSpec& layer, const Holds& holds) {
  return holds(layer.output, layer.output_format) &&
         std::ranges::all_of(layer.inputs, [&](const LayerInput& input) {
           return holds(input.shape, input.format);
         });
}

bool is_full(DataType type) {
  return type == DataType::full;
}

}  // namespace

const Op& op_named(std::string_view name) {
  const std::span<const Op> ops = all_ops();
  const auto found = std::ranges::find(ops, name, &Op::name);
  if (found != ops.end()) return *found;
  std::vector<std::string_view> names;
  for (const Op& op : ops) names.emplace_back(op.name);
  fail(ExitCode::usage, "there is no kind of layer '{}'; known: {}", name, fmt::join(names, ", "));
}

LayerSpec inferred(const Model& model, const LayerSpec& layer, bool learns) {
  LayerSpec anew;
  anew.kind = layer.kind;
  anew.name = layer.name;
  anew.inputs = layer.inputs;
  layer.kind->infer(anew, GivenArguments(layer.name, layer.kind->arguments, layer.arguments),
                    {.network = model.name, .images = model.input, .learns = learns});
  return anew;
}

std::string fit_kernels(LayerSpec& layer, const KernelChoice& choice) {
  layer.kernels = Kernels::portable;
  layer.saved.clear();
  layer.workspace.clear();
  layer.slow_because.clear();
  return layer.kind->fit(layer, choice);
}

bool has_full_numbers(const LayerSpec& layer) {
  return all_tensors(layer, [](const SampleShape&,
                               const TensorFormat& format) { return is_full(format.type); }) &&
         std::ranges::all_of(layer.parameters, is_full, &ParameterSpec::type);
}

bool has_one_type(const LayerSpec& layer) {
  const DataType type = layer.output_format.type;
  return all_tensors(layer, [&](const SampleShape&,
                                const TensorFormat& format) { return format.type == type; }) &&
         std::ranges::all_of(layer.parameters, [&](const ParameterSpec& parameter) {
           return parameter.is_per_feature() || parameter.type == type;
         });
}

bool is_plain(const LayerSpec& layer) {
  return all_tensors(
      layer, [](const SampleShape&, const TensorFormat& format) { return format.block == 1; });
}

bool lies_in_blocks(const SampleShape& shape, const TensorFormat& format, int block) {
  const bool one_pixel = shape.pixels() == 1;
  return shape.channels % block == 0 && (format.block == block || (one_pixel && format.block == 1));
}

bool is_blocked(const LayerSpec& layer, const KernelChoice& choice) {
  return choice.blocks() && has_one_type(layer) &&
         all_tensors(layer, [&](const SampleShape& shape, const TensorFormat& format) {
           return lies_in_blocks(shape, format, choice.block);
         });
}

bool is_channels_last(const LayerSpec& layer, const KernelChoice& choice) {
  return choice.channels_last() &&
         all_tensors(layer, [&](const SampleShape& shape, const TensorFormat& format) {
           return lies_in_blocks(shape, format, shape.channels);
         });
}

int filled_block(const KernelChoice& choice) {
  constexpr int vector = 8;  // numbers of bf16 that tensor cores take at once
  return choice.channels_last() ? vector : choice.block;
}

std::string odd_channels(int channels, const KernelChoice& choice) {
  if (channels % filled_block(choice) == 0) return "";
  return fmt::format("{} channels, no multiple of {}", channels, filled_block(choice));
}

std::string fit_in_any_order(LayerSpec& layer, const KernelChoice& /*choice*/) {
  const auto is_same = [&](const LayerInput& input) { return input.format == layer.output_format; };
  return std::ranges::all_of(layer.inputs, is_same) ? "" : "its tensors lie in different orders";
}

std::string fit_in_plain_order(LayerSpec& layer, const KernelChoice& /*choice*/) {
  return is_plain(layer) ? "" : "it computes in plain order";
}

std::string fit_loss(LayerSpec& layer, const KernelChoice& choice) {
  // What the sum is divided by, where that is not known before.
  if (layer.target.is_weighted())
    layer.saved.push_back({.name = "weight", .bytes = {.fixed = sizeof(double)}});
  return fit_in_plain_order(layer, choice);
}

std::string fit_portable(LayerSpec& layer) {
  if (!has_full_numbers(layer)) return "it computes in full numbers";
  return fit_in_plain_order(layer, {});
}

std::vector<ArgumentSpec> window_arguments() {
  return {{.name = "kernel", .least = 1},
          {.name = "stride", .otherwise = 1, .least = 1},
          {.name = "padding", .otherwise = 0}};
}

std::vector<ArgumentSpec> pool_arguments() {
  std::vector<ArgumentSpec> arguments = window_arguments();
  arguments[1].otherwise = 0;
  arguments[1].least = 0;
  return arguments;
}

std::vector<ArgumentSpec> convolution_arguments() {
  std::vector<ArgumentSpec> arguments = window_arguments();
  arguments.push_back({.name = "dilation", .otherwise = 1, .least = 1});
  arguments.push_back({.name = "groups", .otherwise = 1, .least = 1});
  arguments.push_back({.name = "channels", .least = 1});
  return arguments;
}

void check_groups(int groups, int in, int out) {
  if (in % groups != 0 || out % groups != 0)
    fail(ExitCode::usage,
         "groups = {} does not divide the {} channels it reads and the {} it makes", groups, in,
         out);
}

Window window_of(const GivenArguments& arguments, const Surroundings& around) {
  const int kernel = arguments.whole("kernel");
  const int stride = arguments.whole("stride");
  return {.kernel = kernel,
          .stride = stride > 0 ? stride : kernel,
          .padding = arguments.whole("padding"),
          .axes = around.axes()};
}

void infer_by_number(LayerSpec& layer, double forward_flops, double backward_flops) {
  const auto size = static_cast<double>(layer.input().size());
  layer.output = layer.input();
  layer.forward_flops = forward_flops * size;
  layer.backward_flops = backward_flops * size;
}

void infer_from_input(LayerSpec& layer, double forward_flops, double backward_flops) {
  infer_by_number(layer, forward_flops, backward_flops);
  layer.saves_input = true;
  layer.output_recomputable = true;
}

void infer_loss(LayerSpec& layer, double forward_flops, double backward_flops,
                const Surroundings& around) {
  layer.target = around.target;
  infer_by_number(layer, forward_flops, backward_flops);
  layer.saves_output = true;
  layer.in_place = true;
}

std::vector<ParameterSpec> channel_parameters(const LayerSpec& layer) {
  const std::int64_t channels = layer.input().channels;
  return {{layer.name + ".weight", {channels}, ones()},
          {layer.name + ".bias", {channels}, zeros()}};
}

ArgumentSpec epsilon_argument(double otherwise) {
  return {.name = "epsilon", .otherwise = otherwise, .least = 1e-12, .most = 1, .whole = false};
}

ArgumentSpec any_number(const char* name, double otherwise) {
  constexpr double most = 1 << 24;
  return {.name = name, .otherwise = otherwise, .least = -most, .most = most, .whole = false};
}

SampleShape behind_window(const LayerSpec& layer, int channels, const Window& window,
                          const Surroundings& around) {
  const auto places = [&](int rows) {
    const int count = window.places(rows);
    if (count < 1)
      fail(ExitCode::usage, "data.file: images of {} are too small for {}: {} would leave nothing",
           to_string(around.images), around.network, layer.label());
    return count;
  };
  return with_each_axis(layer.input(), channels, window.axes, places);
}

}  // namespace carousel
