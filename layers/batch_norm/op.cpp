// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/batch_norm/op.hpp"

#include <fmt/core.h>

#include "core/model/workspace.hpp"

namespace carousel {

SavedTensor norm_statistics(const LayerSpec& layer) {
  return {"statistics", {5 * std::int64_t{sizeof(real)} * layer.input().channels, 0}, true};
}

namespace ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& /*around*/) {
  const std::int64_t channels = layer.input().channels;
  layer.attributes = op::BatchNorm{.epsilon = arguments.number("epsilon")};
  layer.parameters = channel_parameters(layer);
  for (const auto& [name, first] : {std::pair("mean", zeros()), {"var", ones()}})
    layer.buffers.push_back({.name = layer.name + ".running_" + name,
                             .shape = {channels},
                             .initial = first,
                             .learned = false,
                             .momentum = arguments.number("momentum")});
  // Per pixel; forward: mean 1, variance 3, result 3; backward: two sums 4, result 5.
  infer_from_input(layer, 7, 9);
  layer.normalises_samples = true;
}

/// What portable kernels save is less by what others make of a mean and a deviation once.
std::string fit(LayerSpec& layer, const KernelChoice& choice) {
  const auto& norm = layer.as<op::BatchNorm>();
  layer.saves_input = layer.output_recomputable = layer.normalises_samples = true;
  layer.saves_output = norm.adds && norm.rectifies;
  layer.aliases_second_gradient = norm.adds;
  layer.saved = {norm_statistics(layer)};
  if (fit_in_any_order(layer, choice).empty() && is_channels_last(layer, choice)) {
    layer.kernels = Kernels::channels_last;
    layer.workspace = {{norm_workspace, 0}};
    return "";
  }
  if (is_blocked(layer, choice)) {
    layer.kernels = Kernels::blocked;
    layer.workspace = {norm_sums(layer)};
    return "";
  }
  const std::int64_t channel = 3 * std::int64_t{sizeof(real)};
  layer.saved = {{"statistics", {channel * layer.input().channels, 0}, true}};
  if (norm.adds || norm.rectifies) return "it is fused with others";
  return fit_portable(layer);
}

/// Batch norm with what follows it.
void extend(std::span<const LayerSpec> run, LayerSpec& fused) {
  auto norm = run.front().as<op::BatchNorm>();
  norm.adds = run.size() == 3;
  norm.rectifies = true;
  fused.attributes = norm;
}

std::string describe(const LayerSpec& layer) {
  const auto& norm = layer.as<op::BatchNorm>();
  return fmt::format("batch_norm{}{}", norm.adds ? "+add" : "", norm.rectifies ? "+relu" : "");
}

}  // namespace

/// torch.nn.BatchNorm2d
Op batch_norm() {
  return {.name = "batch_norm",
          .arguments = {epsilon_argument(op::BatchNorm{}.epsilon),
                        {.name = "momentum", .otherwise = 0.1, .most = 1, .whole = false}},
          .infer = infer,
          .fit = fit,
          .fusions = {{.ops = {"batch_norm", "add", "relu"}, .complete = extend},
                      {.ops = {"batch_norm", "relu"}, .complete = extend}},
          .describe = describe};
}

}  // namespace ops
}  // namespace carousel
