// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/channels_last/norm.hpp"

#include "layers/channels_last/norm_kernels.hpp"

namespace carousel::channels_last {
namespace {

/// d_second = or += what d_output has become.
template <class Stored>
void hand_on(const ExecutionSpace& exec, const Tensor& d_output, const Tensor& d_second,
             bool adds) {
  static const std::string label = "carousel::layers::norm_backward_second";
  if (d_second.data == nullptr || d_second.data == d_output.data) return;
  const Rows<const Stored> from(d_output);
  const Rows<Stored> to(d_second);
  for_each_number(
      exec, label, from.size(), from.channels, KOKKOS_LAMBDA(int, std::int64_t i) {
        put(to.data[i], adds ? full(to.data[i]) + full(from.data[i]) : full(from.data[i]));
      });
}

}  // namespace

BatchNorm::BatchNorm(const LayerSpec& spec, const Engine& engine)
    : channels_(spec.input().channels),
      type_(spec.output_format.type),
      kind_(spec.as<kind::BatchNorm>()),
      workspace_(engine.workspace) {
  CAROUSEL_CHECK(
      spec.input() == spec.output && spec.parameter_size() == 2 * std::int64_t{channels_} &&
          spec.inputs.size() == (kind_.adds ? 2 : 1),
      "batch norm {} has {} channels, {} parameters", spec.name, channels_, spec.parameter_size());
  for (const LayerInput& input : spec.inputs)
    CAROUSEL_CHECK(input.format.type == type_, "{}: {} becomes {}", spec.label(),
                   to_string(input.format), to_string(spec.output_format));
}

void BatchNorm::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  const NormStatistics statistics = find_statistics(exec, type_, arguments, arguments.parameters,
                                                    reinterpret_cast<double*>(workspace_.data()));
  normalise(exec, type_, arguments.input, kind_.adds ? arguments.second : ConstTensor{}, statistics,
            kind_.rectifies, arguments.output);
}

void BatchNorm::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  const NormStatistics saved(const_cast<std::byte*>(arguments.saved), channels_);
  const Mask mask = !kind_.rectifies ? Mask::none : kind_.adds ? Mask::output : Mask::input;
  norm_gradient(exec, type_, mask,
                {.x = arguments.input,
                 .y = arguments.output,
                 .d_y = arguments.d_output,
                 .d_x = arguments.d_input,
                 .adds = arguments.adds_input},
                saved, reinterpret_cast<double*>(workspace_.data()), arguments.d_parameters,
                arguments.statistics);
  if (!kind_.adds) return;
  with_stored(type_, [&]<class Stored>() {
    hand_on<Stored>(exec, arguments.d_output, arguments.d_second, arguments.adds_second);
  });
}

}  // namespace carousel::channels_last
