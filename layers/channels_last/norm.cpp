// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/channels_last/norm.hpp"

#include "layers/add_numbers.hpp"
#include "layers/batch_norm/op.hpp"
#include "layers/channels_last/norm_kernels.hpp"

namespace carousel::channels_last {

BatchNorm::BatchNorm(const LayerSpec& spec, const Engine& engine)
    : channels_(spec.input().channels),
      type_(spec.output_format.type),
      kind_(spec.as<op::BatchNorm>()),
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
  const NormStatistics statistics =
      find_statistics(exec, type_, arguments, kind_.epsilon, arguments.parameters,
                      reinterpret_cast<double*>(workspace_.data()));
  normalise(exec, type_, arguments.input, kind_.adds ? arguments.second : ConstTensor{}, statistics,
            kind_.rectifies, arguments.output);
}

void BatchNorm::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::norm_backward_second";
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
  // What d_output has become.
  const Tensor& d_second = arguments.d_second;
  if (d_second.data == nullptr || d_second.data == arguments.d_output.data) return;
  with_stored(type_, [&]<class Stored>() {
    hand_on<Stored>(exec, label, arguments.d_output, d_second, arguments.adds_second);
  });
}

}  // namespace carousel::channels_last
