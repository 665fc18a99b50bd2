// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/conv_transpose/op.hpp"

#include <algorithm>
#include <climits>

#include "core/base/check.hpp"
#include "core/model/op.hpp"
#include "core/model/workspace.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& around) {
  Window window = window_of(arguments, around);
  window.dilation = arguments.whole("dilation");
  const int channels = arguments.whole("channels");
  const int groups = arguments.whole("groups");
  const int more = arguments.whole("output_padding");
  const std::int64_t in = layer.input().channels;
  check_groups(groups, layer.input().channels, channels);
  if (more > 0 && more >= std::max(window.stride, window.dilation))
    fail(ExitCode::usage, "output_padding = {} is no less than stride and dilation", more);
  layer.attributes = op::TransposedConvolution{window, groups};
  const auto grows = [&](int size) {
    const std::int64_t grown = std::int64_t{size - 1} * window.stride -
                               std::int64_t{2} * window.padding +
                               std::int64_t{window.dilation} * (window.kernel - 1) + more + 1;
    if (grown < 1 || grown > INT_MAX) fail(ExitCode::usage, "it makes {} of {} rows", grown, size);
    return static_cast<int>(grown);
  };
  const SampleShape& input = layer.input();
  layer.output = with_each_axis(input, channels, window.axes, grows);
  const std::int64_t taps = window.taps();
  const std::int64_t out = channels / groups;
  // torch.nn.ConvTranspose2d takes the second dimension for the fan.
  const Initial initial = lecun_uniform(out * taps);
  layer.parameters = {{layer.name + ".weight", window.weights(in, out), initial}};
  const double product = 2.0 * static_cast<double>(out * taps * input.size());
  layer.forward_flops = product;
  layer.backward_flops = (around.learns ? 2 : 1) * product;
  if (arguments.flag("bias")) {
    layer.parameters.push_back({layer.name + ".bias", {channels}, initial});
    layer.forward_flops += static_cast<double>(layer.output.size());
    layer.backward_flops += static_cast<double>(layer.output.size());
  }
  layer.saves_input = true;
}

/// Fast where each pixel of the output meets a tap.
std::string fit(LayerSpec& layer, const KernelChoice& choice) {
  const auto& convolution = layer.as<op::TransposedConvolution>();
  const Window& window = convolution.window;
  const bool is_common =
      window.is_simple() && convolution.groups == 1 && window.kernel >= window.stride;
  if (is_common && is_blocked(layer, choice)) {
    layer.kernels = Kernels::blocked;
    layer.workspace = transposed_workspace(layer, choice.block);
    return "";
  }
  if (choice.blocks()) {
    std::string odd = odd_channels(layer.output.channels, choice);
    if (odd.empty()) odd = odd_channels(layer.input().channels, choice);
    layer.slow_because =
        is_common ? odd : "groups, dilation, one axis or a kernel below its stride";
  }
  return fit_portable(layer);
}

}  // namespace

/// torch.nn.ConvTranspose2d with square windows, ConvTranspose3d with cubes, or ConvTranspose1d.
Op conv_transpose() {
  std::vector<ArgumentSpec> arguments = convolution_arguments();
  arguments.push_back({.name = "output_padding", .otherwise = 0});
  arguments.push_back({.name = "bias", .otherwise = 1, .most = 1});
  return {.name = "conv_transpose",
          .arguments = arguments,
          .size = "channels",
          .infer = infer,
          .fit = fit};
}

}  // namespace carousel::ops
