// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/max_pool/op.hpp"

#include "core/model/op.hpp"
#include "core/model/workspace.hpp"
#include "layers/batch_norm/op.hpp"
#include "layers/pool_op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& around) {
  Window window = pool_window_of(arguments, around);
  window.ceils = arguments.whole("ceil_mode") > 0;
  layer.attributes = op::MaxPool{window};
  layer.output = behind_window(layer, layer.input().channels, window, around);
  const double comparisons = window.taps();
  layer.forward_flops = layer.backward_flops =
      comparisons * static_cast<double>(layer.output.size());
  layer.saves_input = true;
}

std::string fit(LayerSpec& layer, const KernelChoice& choice) {
  const auto& pool = layer.as<op::MaxPool>();
  layer.saves_input = layer.saves_output = layer.normalises_samples = pool.normalises;
  if (pool.normalises) layer.saved.push_back(norm_statistics(layer));
  layer.saved.push_back({"indices", {0, layer.output.size()}, true});
  if (pool.window.taps() <= op::most_indexed_taps && pool.window.axes > 1) {
    if (!pool.normalises && pool.window.axes == 2 && fit_in_any_order(layer, choice).empty() &&
        is_channels_last(layer, choice)) {
      layer.kernels = Kernels::channels_last;
      return "";
    }
    if (is_blocked(layer, choice)) {
      layer.kernels = Kernels::blocked;
      if (pool.normalises) layer.workspace = {norm_sums(layer)};
      return "";
    }
  }
  layer.saves_input = true;
  layer.saved.clear();
  if (pool.normalises) return "it is fused with others";
  return fit_portable(layer);
}

std::string describe(const LayerSpec& layer) {
  return layer.as<op::MaxPool>().normalises ? "norm+relu+max_pool" : "max_pool";
}

}  // namespace

/// torch.nn.MaxPool2d, MaxPool1d or MaxPool3d
Op max_pool() {
  std::vector<ArgumentSpec> arguments = pool_arguments();
  arguments.push_back({.name = "ceil_mode", .otherwise = 0, .most = 1});
  return {.name = "max_pool",
          .arguments = std::move(arguments),
          .infer = infer,
          .fit = fit,
          .fusions = {norm_in_front_of<op::MaxPool>("max_pool")},
          .describe = describe};
}

}  // namespace carousel::ops
