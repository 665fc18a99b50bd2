// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/builder.hpp"

#include <utility>

#include "core/base/check.hpp"

namespace carousel {

ModelBuilder::ModelBuilder(const std::string& name, const SampleShape& input,
                           const TargetSpec& target)
    : model_{.name = name, .input = input, .target = target, .layers = {}} {}

ModelBuilder& ModelBuilder::from(int layer) {
  CAROUSEL_CHECK(layer <= last(), "layer {} reads layer {}", last() + 1, layer);
  from_ = layer;
  return *this;
}

const SampleShape& ModelBuilder::shape() const {
  return model_.layers.empty() ? model_.input : model_.layers.back().output;
}

LayerInput ModelBuilder::input_from(int layer) const {
  if (layer < 0) return {-1, model_.input};
  return {layer, model_.layers[layer].output, model_.layers[layer].output_format};
}

LayerSpec& ModelBuilder::add(std::string_view kind, const std::string& name,
                             const Arguments& arguments) {
  return append(op_named(kind), name, {from_}, arguments);
}

LayerSpec& ModelBuilder::add_joining(std::string_view kind, const std::string& name, int second) {
  return append(op_named(kind), name, {from_, second}, {});
}

LayerSpec& ModelBuilder::add_loss(const TaskConfig& task) {
  const Op& loss = loss_named(task.loss);
  const TargetSpec& target = model_.target;
  if (!loss.loss->takes(target.kind))
    fail(ExitCode::usage, "task.loss = \"{}\" compares with {}, and the data set has {}; use {}",
         task.loss, target.has_labels() ? "numbers" : "labels", to_string(target),
         losses_for(target.kind));
  if (!task.weights.empty() && std::ssize(task.weights) != target.classes)
    fail(ExitCode::usage, "task.weights are of {} classes, and the data set has {}",
         task.weights.size(), to_string(target));
  model_.target.weights = task.weights;
  LayerSpec& layer = append(loss, "", {from_}, task.arguments);
  layer.metrics = metrics_of(task, target);
  if (const int sums = sums_of(layer.metrics, target); sums > most_sums)
    fail(ExitCode::usage, "task.metrics add up {} numbers, and a run has at most {}; name fewer",
         sums, most_sums);
  for (const Metric* metric : layer.metrics) {
    if (!metric->takes(target.kind))
      fail(ExitCode::usage, "task.metrics: {} is of {}, and the data set has {}; remove it",
           metric->name, target.has_labels() ? "numbers" : "labels", to_string(target));
    if (metric->needs_pixels && target.pixels() == 1)
      fail(ExitCode::usage, "task.metrics: {} is of fields, and the data set has {}; remove it",
           metric->name, to_string(target));
    if (target.channels() < metric->least_outputs)
      fail(ExitCode::usage,
           "task.metrics: {} tells nothing of a network of {} outputs, only of {} or more; remove "
           "it",
           metric->name, target.channels(), metric->least_outputs);
  }
  return layer;
}

LayerSpec& ModelBuilder::append(const Op& op, const std::string& name,
                                const std::vector<int>& inputs, const Arguments& arguments) {
  LayerSpec layer;
  layer.kind = &op;
  layer.name = name;
  layer.arguments = arguments;
  for (const int input : inputs) layer.inputs.push_back(input_from(input));
  const std::string subject = name.empty() ? op.name : fmt::format("{} {}", op.name, name);
  op.infer(layer, GivenArguments(subject, op.arguments, arguments),
           {.network = model_.name,
            .images = model_.input,
            .target = model_.target,
            .learns = model_.parameter_size() > 0});
  const std::string reason = fit_kernels(layer, {});
  CAROUSEL_CHECK(reason.empty(), "{}: no portable kernels: {}", subject, reason);
  model_.layers.push_back(std::move(layer));
  from_ = last();
  return model_.layers.back();
}

}  // namespace carousel
