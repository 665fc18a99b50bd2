// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/model.hpp"

#include "core/base/check.hpp"

namespace carousel {

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

void check_tensors(const Model& model) {
  for (const LayerSpec& layer : model.layers) {
    CAROUSEL_CHECK(!layer.inputs.empty() && layer.inputs.size() <= 2, "{} has {} inputs",
                   layer.label(), layer.inputs.size());
    for (const LayerInput& input : layer.inputs) {
      const LayerSpec* maker = input.layer < 0 ? nullptr : &model.layers[input.layer];
      const SampleShape& shape = maker == nullptr ? model.input : maker->output;
      const TensorFormat format = maker == nullptr ? TensorFormat{} : maker->output_format;
      CAROUSEL_CHECK(shape == input.shape && format == input.format,
                     "{} reads {} in {}, and layer {} leaves {} in {}", layer.label(),
                     to_string(input.shape), to_string(input.format), input.layer, to_string(shape),
                     to_string(format));
    }
  }
}

std::vector<int> tensors_of_layers(const Model& model) {
  std::vector<int> tensors;
  for (int l = 0; l < static_cast<int>(model.layers.size()); ++l) {
    const int input = model.layers[l].inputs[0].layer;
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
    for (const LayerInput& input : layer.inputs) {
      const int tensor = input.layer < 0 ? -1 : tensors[input.layer];
      if (layer.saves_input && tensor >= 0) kept[tensor] = true;
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

std::string to_string(const Model& model) {
  std::string text = fmt::format("{:<34} {:>10} {:>10} {:>10} {:>12}\n", "layer", "input", "output",
                                 "parameters", "FLOP/sample");
  for (const LayerSpec& layer : model.layers) {
    text += fmt::format("{:<34} {:>10} {:>10} {:>10} {:>12.0f}\n", layer.label(),
                        to_string(layer.input()), to_string(layer.output), layer.parameter_size(),
                        layer.forward_flops + layer.backward_flops);
  }
  return text;
}

}  // namespace carousel
