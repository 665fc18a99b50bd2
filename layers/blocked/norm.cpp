// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/norm.hpp"

#include "core/base/check.hpp"
#include "core/base/range.hpp"
#include "layers/batch_norm/op.hpp"
#include "layers/blocked/blocked.hpp"
#include "layers/blocked/norm_kernels.hpp"
#include "layers/blocked/tasks.hpp"

namespace carousel::blocked {
namespace {

template <bool Adds, bool Rectifies>
void apply(const ExecutionSpace& exec, const Planes<const real>& x,
           const Planes<const real>& second, const NormStatistics& statistics,
           const Planes<real>& y) {
  static const std::string label = "carousel::layers::norm_forward";
  for_each_task(exec, label, x.images * x.blocks, [=](int task) {
    const int image = task / x.blocks;
    const int block = task % x.blocks;
    const real* from = x.plane(image, block);
    const real* other = Adds ? second.plane(image, block) : nullptr;
    real* to = y.plane(image, block);
    const Lanes scale = load(statistics.scale + block * lanes);
    const Lanes shift = load(statistics.shift + block * lanes);
    for (std::int64_t p = 0; p < x.plane_size(); p += lanes) {
      Lanes value = affine(load(from + p), scale, shift);
      if constexpr (Adds) value += load(other + p);
      store(to + p, Rectifies ? rectified(value) : value);
    }
  });
}

/// d_second = or += what d_output has become.
void hand_on(const ExecutionSpace& exec, const Tensor& d_output, const Tensor& d_second,
             bool adds) {
  static const std::string label = "carousel::layers::norm_backward_second";
  if (d_second.data == nullptr || d_second.data == d_output.data) return;
  const real* from = d_output.data;
  real* to = d_second.data;
  Kokkos::parallel_for(
      label, range(exec, d_output.size()),
      KOKKOS_LAMBDA(std::int64_t i) { to[i] = adds ? to[i] + from[i] : from[i]; });
}

}  // namespace

BatchNorm::BatchNorm(const LayerSpec& spec, const Engine& engine)
    : channels_(spec.input().channels),
      kind_(spec.as<op::BatchNorm>()),
      workspace_(engine.workspace) {
  CAROUSEL_CHECK(spec.input() == spec.output && channels_ % lanes == 0 &&
                     spec.parameter_size() == 2 * std::int64_t{channels_} &&
                     spec.inputs.size() == (kind_.adds ? 2 : 1),
                 "batch norm {} has {} channels, {} parameters", spec.name, channels_,
                 spec.parameter_size());
}

void BatchNorm::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  const Planes<const real> x(arguments.input);
  const Planes<const real> second(arguments.second);
  const Planes<real> y(arguments.output);
  const NormStatistics statistics = find_statistics(exec, arguments, kind_.epsilon, workspace_);
  if (kind_.adds && kind_.rectifies)
    apply<true, true>(exec, x, second, statistics, y);
  else if (kind_.adds)
    apply<true, false>(exec, x, second, statistics, y);
  else if (kind_.rectifies)
    apply<false, true>(exec, x, second, statistics, y);
  else
    apply<false, false>(exec, x, second, statistics, y);
}

void BatchNorm::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  const NormStatistics saved(const_cast<std::byte*>(arguments.saved), channels_);
  const Mask mask = !kind_.rectifies ? Mask::none : kind_.adds ? Mask::output : Mask::input;
  norm_gradient(exec, mask,
                {.x = Planes<const real>(arguments.input),
                 .y = Planes<const real>(arguments.output),
                 .d_y = Planes<real>(arguments.d_output),
                 .d_x = Planes<real>(arguments.d_input),
                 .adds = arguments.adds_input},
                saved, reinterpret_cast<double*>(workspace_.data()), arguments.d_parameters,
                arguments.statistics);
  if (kind_.adds) hand_on(exec, arguments.d_output, arguments.d_second, arguments.adds_second);
}

std::unique_ptr<Layer> batch_norm(const LayerSpec& spec, const Engine& engine) {
  return std::make_unique<BatchNorm>(spec, engine);
}

}  // namespace carousel::blocked
