// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/group_norm/op.hpp"

#include <fmt/core.h>

#include "core/base/check.hpp"
#include "core/model/op.hpp"
#include "core/model/workspace.hpp"

namespace carousel {

int group_norm_parts(int pixels) {
  constexpr int most = 16;
  constexpr int least_pixels = 64;  // of a part
  int parts = 1;
  for (int k = 2; k <= most && pixels / k >= least_pixels; ++k)
    if (pixels % k == 0) parts = k;
  return parts;
}

namespace ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& /*around*/) {
  const SampleShape& shape = layer.input();
  const int groups = arguments.whole("groups");
  layer.attributes = op::GroupNorm{.groups = groups, .epsilon = arguments.number("epsilon")};
  if (shape.channels % groups != 0)
    fail(ExitCode::usage, "{}: {} groups do not divide {} channels", layer.label(), groups,
         shape.channels);
  if (shape.size() == groups)
    fail(
        ExitCode::usage,
        "{}: each of {} groups of {} is one number, of which nothing is left; give fewer groups or "
        "larger images",
        layer.label(), groups, to_string(shape));
  layer.parameters = channel_parameters(layer);
  // Per number; forward: mean 1, variance 3, result 3; backward: two sums 4, result 5.
  infer_from_input(layer, 7, 9);
}

std::string fit(LayerSpec& layer, const KernelChoice& choice) {
  const auto& norm = layer.as<op::GroupNorm>();
  layer.saves_input = layer.output_recomputable = true;
  layer.saves_output = norm.adds;
  layer.aliases_second_gradient = norm.adds;
  const std::int64_t group = 2 * std::int64_t{sizeof(real)};
  layer.saved = {{"statistics", {0, norm.groups * group}, true}};
  const bool one_format = fit_in_any_order(layer, choice).empty();
  if (!norm.is_affine)
    return one_format && is_plain(layer) ? "" : "without parameters it computes in plain order";
  layer.workspace = {channel_sums(layer)};
  if (one_format && is_channels_last(layer, choice)) {
    const SampleShape& shape = layer.input();
    layer.kernels = Kernels::channels_last;
    layer.workspace[0].per_sample *= group_norm_parts(static_cast<int>(shape.pixels()));
    layer.workspace[0].per_sample += norm.groups * group;
    return "";
  }
  if (is_blocked(layer, choice)) {
    layer.kernels = Kernels::blocked;
    return "";
  }
  if (norm.adds || norm.rectifies) return "it is fused with others";
  return one_format && is_plain(layer) ? "" : "it computes in plain order";
}

/// Group norm with what follows it.
void extend(std::span<const LayerSpec> run, LayerSpec& fused) {
  auto norm = run.front().as<op::GroupNorm>();
  norm.adds = run.size() == 3;
  norm.rectifies = true;
  fused.attributes = norm;
}

std::string describe(const LayerSpec& layer) {
  const auto& norm = layer.as<op::GroupNorm>();
  return fmt::format("group_norm{}{}", norm.adds ? "+add" : "", norm.rectifies ? "+relu" : "");
}

}  // namespace

/// torch.nn.GroupNorm (Wu & He 2018, arXiv 1803.08494). Statistics are of one sample, so that there
/// are none to keep for evaluation.
Op group_norm() {
  return {.name = "group_norm",
          .arguments = {{.name = "groups", .least = 1}, epsilon_argument(op::GroupNorm{}.epsilon)},
          .infer = infer,
          .fit = fit,
          .fusions = {{.ops = {"group_norm", "add", "relu"}, .complete = extend},
                      {.ops = {"group_norm", "relu"}, .complete = extend}},
          .describe = describe};
}

}  // namespace ops
}  // namespace carousel
