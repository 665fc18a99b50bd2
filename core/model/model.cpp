// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/model.hpp"

#include <numeric>

#include "core/base/check.hpp"

namespace carousel {

std::int64_t ParameterSpec::size() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

namespace {

std::int64_t size_of(const std::vector<ParameterSpec>& tensors) {
  std::int64_t size = 0;
  for (const ParameterSpec& tensor : tensors) size += tensor.size();
  return size;
}

}  // namespace

std::int64_t LayerSpec::parameter_size() const {
  return size_of(parameters);
}

std::int64_t LayerSpec::buffer_size() const {
  return size_of(buffers);
}

std::string LayerSpec::label() const {
  return name.empty() ? to_string(kind) : fmt::format("{} {}", to_string(kind), name);
}

std::int64_t Model::parameter_size() const {
  std::int64_t size = 0;
  for (const LayerSpec& layer : layers) size += layer.parameter_size();
  return size;
}

std::int64_t Model::buffer_size() const {
  std::int64_t size = 0;
  for (const LayerSpec& layer : layers) size += layer.buffer_size();
  return size;
}

std::vector<int> input_layers(const Model& model, int l) {
  const std::vector<int>& inputs = model.layers[l].inputs;
  return inputs.empty() ? std::vector<int>{l - 1} : inputs;
}

std::vector<int> tensors_of_layers(const Model& model) {
  std::vector<int> tensors;
  for (int l = 0; l < static_cast<int>(model.layers.size()); ++l) {
    const int input = input_layers(model, l)[0];
    const int overwritten = input < 0 ? -1 : tensors[input];
    tensors.push_back(model.layers[l].in_place ? overwritten : l);
  }
  return tensors;
}

std::vector<bool> tensors_kept(const Model& model) {
  const std::vector<int> tensors = tensors_of_layers(model);
  std::vector<bool> kept(tensors.size(), false);
  for (int l = 0; l < static_cast<int>(tensors.size()); ++l) {
    const LayerSpec& layer = model.layers[l];
    if (layer.saves_output && tensors[l] >= 0) kept[tensors[l]] = true;
    for (const int input : input_layers(model, l)) {
      if (layer.saves_input && input >= 0 && tensors[input] >= 0) kept[tensors[input]] = true;
    }
  }
  return kept;
}

void check_model(const ModelConfig& config) {
  if (config.name == "mlp") return;
  if (config.name == "resnet") return check_resnet(config.depth, config.stem);
  fail(ExitCode::usage, "model.name = \"{}\" is not a model of this version; known: mlp, resnet",
       config.name);
}

Model build_model(const ModelConfig& config, const SampleShape& input, int classes) {
  check_model(config);
  if (config.name == "resnet") return build_resnet(config.depth, config.stem, input, classes);
  return build_mlp(config.widths, input, classes, config.dropout);
}

const char* to_string(Stem stem) {
  return stem == Stem::cifar ? "cifar" : "imagenet";
}

std::string to_string(const SampleShape& shape) {
  return fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
}

const char* to_string(LayerKind kind) {
  switch (kind) {
    case LayerKind::flatten:
      return "flatten";
    case LayerKind::linear:
      return "linear";
    case LayerKind::relu:
      return "relu";
    case LayerKind::softmax_cross_entropy:
      return "softmax_cross_entropy";
    case LayerKind::convolution:
      return "convolution";
    case LayerKind::batch_norm:
      return "batch_norm";
    case LayerKind::max_pool:
      return "max_pool";
    case LayerKind::average_pool:
      return "average_pool";
    case LayerKind::add:
      return "add";
    case LayerKind::dropout:
      return "dropout";
  }
  return "?";
}

std::string to_string(const Model& model) {
  std::string text = fmt::format("{:<34} {:>10} {:>10} {:>10} {:>12}\n", "layer", "input", "output",
                                 "parameters", "FLOP/sample");
  for (const LayerSpec& layer : model.layers) {
    text += fmt::format("{:<34} {:>10} {:>10} {:>10} {:>12.0f}\n", layer.label(),
                        to_string(layer.input), to_string(layer.output), layer.parameter_size(),
                        layer.forward_flops + layer.backward_flops);
  }
  return text;
}

}  // namespace carousel
