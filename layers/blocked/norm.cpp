// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/norm.hpp"

#include "core/base/check.hpp"
#include "layers/add_numbers.hpp"
#include "layers/batch_norm/op.hpp"
#include "layers/blocked/blocked.hpp"
#include "layers/blocked/norm_kernels.hpp"
#include "layers/blocked/tasks.hpp"
#include "layers/stored.hpp"

namespace carousel::blocked {
namespace {

template <bool Adds, bool Rectifies, class Stored>
void normalise(const ExecutionSpace& exec, const Planes<const Stored>& x,
               const Planes<const Stored>& second, const NormStatistics& statistics,
               const Planes<Stored>& y) {
  static const std::string label = "carousel::layers::norm_forward";
  for_each_task(exec, label, x.slices() * x.blocks, [=](int task) {
    const int slice = task / x.blocks;
    const int block = task % x.blocks;
    const Stored* from = x.slice(slice, block);
    const Stored* other = Adds ? second.slice(slice, block) : nullptr;
    Stored* to = y.slice(slice, block);
    const Lanes scale = load(statistics.scale + block * lanes);
    const Lanes shift = load(statistics.shift + block * lanes);
    for (std::int64_t p = 0; p < x.slice_size(); p += lanes) {
      Lanes value = affine(load(from + p), scale, shift);
      if constexpr (Adds) value += load(other + p);
      store(to + p, Rectifies ? rectified(value) : value);
    }
  });
}

}  // namespace

BatchNorm::BatchNorm(const LayerSpec& spec, const Engine& engine)
    : channels_(spec.input().channels),
      type_(spec.output_format.type),
      kind_(spec.as<op::BatchNorm>()),
      workspace_(engine.workspace) {
  CAROUSEL_CHECK(spec.input() == spec.output && channels_ % lanes == 0 &&
                     spec.parameter_size() == 2 * std::int64_t{channels_} &&
                     spec.inputs.size() == (kind_.adds ? 2 : 1),
                 "batch norm {} has {} channels, {} parameters", spec.name, channels_,
                 spec.parameter_size());
}

template <class Stored>
void BatchNorm::apply(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  const Planes<const Stored> x(arguments.input);
  const Planes<const Stored> second(arguments.second);
  const Planes<Stored> y(arguments.output);
  const NormStatistics statistics =
      find_statistics<Stored>(exec, arguments, kind_.epsilon, workspace_);
  if (kind_.adds && kind_.rectifies)
    normalise<true, true>(exec, x, second, statistics, y);
  else if (kind_.adds)
    normalise<true, false>(exec, x, second, statistics, y);
  else if (kind_.rectifies)
    normalise<false, true>(exec, x, second, statistics, y);
  else
    normalise<false, false>(exec, x, second, statistics, y);
}

template <class Stored>
void BatchNorm::differentiate(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string second_label = "carousel::layers::norm_backward_second";
  const NormStatistics saved(const_cast<std::byte*>(arguments.saved), channels_);
  const Mask mask = !kind_.rectifies ? Mask::none : kind_.adds ? Mask::output : Mask::input;
  norm_gradient(exec, mask,
                NormGradient<Stored>{.x = Planes<const Stored>(arguments.input),
                                     .y = Planes<const Stored>(arguments.output),
                                     .d_y = Planes<Stored>(arguments.d_output),
                                     .d_x = Planes<Stored>(arguments.d_input),
                                     .adds = arguments.adds_input},
                saved, reinterpret_cast<double*>(workspace_.data()), arguments.d_parameters,
                arguments.statistics);
  const Tensor& d_second = arguments.d_second;
  if (kind_.adds && d_second.data != nullptr && d_second.data != arguments.d_output.data)
    hand_on<Stored>(exec, second_label, arguments.d_output, d_second, arguments.adds_second);
}

void BatchNorm::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  with_stored(type_, [&]<class Stored>() { apply<Stored>(exec, arguments); });
}

void BatchNorm::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  with_stored(type_, [&]<class Stored>() { differentiate<Stored>(exec, arguments); });
}

std::unique_ptr<Layer> batch_norm(const LayerSpec& spec, const Engine& engine) {
  return std::make_unique<BatchNorm>(spec, engine);
}

}  // namespace carousel::blocked
