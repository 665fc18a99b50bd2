// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The multi-layer perceptron as a model description.

#include "core/base/check.hpp"
#include "core/model/model.hpp"

namespace carousel {
namespace {

LayerSpec linear(const std::string& name, int in, int out, bool first) {
  LayerSpec layer;
  layer.kind = LayerKind::linear;
  layer.name = name;
  layer.input = {in};
  layer.output = {out};
  layer.parameters = {{name + ".weight", {out, in}, Initial::kaiming_uniform, in},
                      {name + ".bias", {out}, Initial::zeros, in}};
  const double product = 2.0 * in * out;
  layer.forward_flops = product + out;
  // The gradient of the weights, and of the input except where nothing comes before.
  layer.backward_flops = (first ? 1 : 2) * product + out;
  layer.saves_input = true;
  return layer;
}

LayerSpec relu(const std::string& name, int features) {
  LayerSpec layer;
  layer.kind = LayerKind::relu;
  layer.name = name;
  layer.input = layer.output = {features};
  layer.forward_flops = layer.backward_flops = features;
  layer.saves_output = true;
  layer.in_place = true;
  return layer;
}

LayerSpec flatten(const SampleShape& input) {
  LayerSpec layer;
  layer.kind = LayerKind::flatten;
  layer.name = "";
  layer.input = input;
  layer.output = {static_cast<int>(input.size())};
  layer.in_place = true;
  return layer;
}

/// Backward needs the probabilities, which take the place of the logits.
LayerSpec softmax_cross_entropy(int classes) {
  LayerSpec layer;
  layer.kind = LayerKind::softmax_cross_entropy;
  layer.name = "";
  layer.input = layer.output = {classes};
  layer.forward_flops = 5.0 * classes;
  layer.backward_flops = 2.0 * classes;
  layer.saves_output = true;
  layer.in_place = true;
  return layer;
}

}  // namespace

Model build_mlp(const std::vector<int>& widths, const SampleShape& input, int classes) {
  if (widths.size() < 2)
    fail(ExitCode::usage, "model.widths needs at least two numbers, features and classes");
  if (widths.front() != input.size())
    fail(ExitCode::usage, "model.widths starts with {}, but a sample of the data set has {} values",
         widths.front(), input.size());
  if (widths.back() != classes)
    fail(ExitCode::usage, "model.widths ends with {}, but the data set has {} classes",
         widths.back(), classes);

  Model model{.name = "mlp", .input = input, .classes = classes, .layers = {flatten(input)}};
  // torchvision.ops.MLP is a Sequential of (Linear, ReLU, Dropout) groups: layer l is number 3 l.
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    model.layers.push_back(linear(std::to_string(3 * l), widths[l], widths[l + 1], l == 0));
    if (l + 2 < widths.size())
      model.layers.push_back(relu(std::to_string(3 * l + 1), widths[l + 1]));
  }
  model.layers.push_back(softmax_cross_entropy(classes));
  return model;
}

}  // namespace carousel
