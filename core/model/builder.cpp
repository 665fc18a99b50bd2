// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/builder.hpp"

#include <utility>

#include "core/base/check.hpp"

namespace carousel {

ModelBuilder::ModelBuilder(const std::string& name, const SampleShape& input, int classes)
    : model_{.name = name, .input = input, .classes = classes, .layers = {}} {}

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
  LayerSpec& layer = append(loss_named(task.loss), "", {from_}, task.arguments);
  layer.metrics = metrics_of(task);
  for (const Metric* metric : layer.metrics) {
    if (layer.input().size() < metric->least_outputs)
      fail(ExitCode::usage,
           "task.metrics: {} tells nothing of a network of {} outputs, only of {} or more; remove "
           "it",
           metric->name, layer.input().size(), metric->least_outputs);
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
           {.network = model_.name, .images = model_.input, .learns = model_.parameter_size() > 0});
  const std::string reason = fit_kernels(layer, {});
  CAROUSEL_CHECK(reason.empty(), "{}: no portable kernels: {}", subject, reason);
  model_.layers.push_back(std::move(layer));
  from_ = last();
  return model_.layers.back();
}

}  // namespace carousel
