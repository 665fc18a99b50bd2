// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/model.hpp"

#include <numeric>

#include "core/base/check.hpp"
#include "core/base/text.hpp"

namespace carousel {

std::span<const Metric* const> Model::metrics() const {
  if (layers.empty()) return {};
  return layers.back().metrics;
}

std::int64_t Model::parameter_size() const {
  std::int64_t size = 0;
  for (const LayerSpec& layer : layers) size += layer.parameter_size();
  return size;
}

std::int64_t Model::learned_size() const {
  std::int64_t size = 0;
  for (const LayerSpec& layer : layers) size += layer.learned_size();
  return size;
}

std::string Model::told_frozen() const {
  const std::int64_t frozen = parameter_size() - learned_size();
  return frozen == 0 ? "" : fmt::format(", {} of them frozen", human_count(frozen));
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

namespace {

/// The tensor that an input is; -1: the images.
int tensor_of(const std::vector<int>& tensors, const LayerInput& input) {
  return input.layer < 0 ? -1 : tensors[input.layer];
}

}  // namespace

std::vector<bool> learning_layers(const Model& model) {
  std::vector<bool> learns;
  for (const LayerSpec& layer : model.layers)
    learns.push_back(layer.learned_size() > 0 ||
                     std::ranges::any_of(layer.inputs, [&](const LayerInput& input) {
                       return input.layer >= 0 && learns[input.layer];
                     }));
  return learns;
}

std::vector<int> tensors_of_layers(const Model& model) {
  std::vector<int> tensors;
  for (int l = 0; l < static_cast<int>(model.layers.size()); ++l) {
    const LayerSpec& layer = model.layers[l];
    tensors.push_back(layer.in_place ? tensor_of(tensors, layer.inputs.front()) : l);
  }
  return tensors;
}

namespace {

/// [layer] whether what backward reads of it is kept. Plans of networks of which nothing is frozen
/// have always kept it of all.
std::vector<bool> layers_kept_for(const Model& model) {
  if (model.learned_size() == model.parameter_size())
    return std::vector<bool>(model.layers.size(), true);
  return learning_layers(model);
}

/// [layer] whether some backward reads the tensor that the layer made.
std::vector<bool> tensors_read_again(const Model& model) {
  const std::vector<int> tensors = tensors_of_layers(model);
  const std::vector<bool> kept_for = layers_kept_for(model);
  std::vector<bool> kept(tensors.size(), false);
  const auto keep = [&](int tensor) {
    if (tensor >= 0) kept[tensor] = true;
  };
  for (int l = 0; l < static_cast<int>(tensors.size()); ++l) {
    const LayerSpec& layer = model.layers[l];
    if (!kept_for[l]) continue;
    if (layer.saves_output) keep(tensors[l]);
    if (layer.saves_input) keep(tensor_of(tensors, layer.inputs.front()));
    if (layer.saves_second) keep(tensor_of(tensors, layer.inputs.back()));
  }
  return kept;
}

}  // namespace

std::vector<bool> tensors_made_again(const Model& model) {
  std::vector<bool> again(model.layers.size(), false);
  if (!model.makes_outputs_again) return again;
  const std::vector<bool> read = tensors_read_again(model);
  const std::vector<int> tensors = tensors_of_layers(model);
  const std::vector<bool> kept_for = layers_kept_for(model);
  for (std::size_t l = 0; l < again.size(); ++l) {
    const LayerSpec& layer = model.layers[l];
    again[l] = kept_for[l] && read[l] && layer.output_recomputable && layer.saves_input &&
               !layer.saves_output && !layer.in_place && layer.inputs.size() == 1;
  }
  // What others change in place is more than what the layer made; and only first inputs are made
  // again.
  const auto keep = [&](int tensor) {
    if (tensor >= 0) again[tensor] = false;
  };
  for (std::size_t l = 0; l < again.size(); ++l) {
    const LayerSpec& layer = model.layers[l];
    if (layer.in_place) keep(tensors[l]);
    if (layer.saves_second) keep(tensor_of(tensors, layer.inputs.back()));
  }
  // Nor from what is made again itself, so that one layer runs, not a chain of them.
  for (std::size_t l = 0; l < again.size(); ++l) {
    const int tensor = tensor_of(tensors, model.layers[l].inputs.front());
    if (again[l] && tensor >= 0 && again[tensor]) again[l] = false;
  }
  return again;
}

std::vector<bool> tensors_kept(const Model& model) {
  std::vector<bool> kept = tensors_read_again(model);
  const std::vector<bool> again = tensors_made_again(model);
  for (std::size_t l = 0; l < kept.size(); ++l) kept[l] = kept[l] && !again[l];
  return kept;
}

std::vector<std::int64_t> saved_per_sample(const Model& model) {
  const std::vector<bool> kept = tensors_kept(model);
  std::vector<std::int64_t> bytes;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const LayerSpec& layer = model.layers[l];
    bytes.push_back(kept[l] ? tensor_bytes(layer.output, layer.output_format, 1) : 0);
    for (const SavedTensor& saved : layer.saved) bytes.back() += saved.bytes.per_sample;
  }
  return bytes;
}

namespace {

/// Of group norms; 0: the norms are others.
int groups_of(const ModelConfig& config) {
  return config.norm == Norm::group ? config.groups : 0;
}

}  // namespace

void check_model(const ModelConfig& config) {
  if (config.name == "mlp") return;
  if (config.name == "resnet") return check_resnet(config.depth, config.stem, groups_of(config));
  if (config.name == "vit") return check_vit(config);
  if (config.name == "layers") return check_listed(config);
  fail(ExitCode::usage,
       "model.name = \"{}\" is not a model of this version; known: mlp, resnet, vit, layers",
       config.name);
}

Model build_model(const ModelConfig& config, const SampleShape& input, const TargetSpec& target,
                  const TaskConfig& task) {
  if (config.name == "layers") return build_listed(config, input, target, task);  // which checks
  check_model(config);
  if (config.name == "resnet")
    return build_resnet(config.depth, config.stem, input, target, groups_of(config), task);
  if (config.name == "vit") return build_vit(config, input, target, task);
  return build_mlp(config.widths, input, target, config.dropout, task);
}

std::string to_string(const Model& model) {
  const std::vector<std::int64_t> saved = saved_per_sample(model);
  std::string text =
      fmt::format("{:<34} {:>10} {:>10} {:>11} {:>10}\n", "layer", "output", "parameters",
                  "FLOP/sample", model.recomputes_stages ? "made again" : "saved");
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const LayerSpec& layer = model.layers[l];
    text += fmt::format("{:<34} {:>10} {:>10} {:>11.0f} {:>10}\n", layer.label(34),
                        to_string(layer.output), layer.parameter_size(),
                        layer.forward_flops + layer.backward_flops, human_bytes(saved[l]));
    if (layer.converted == Converted::orders)
      text += fmt::format("  brought into plain order: {}\n", layer.slow_because);
    else if (!layer.slow_because.empty())
      text += fmt::format("  by portable kernels: {}\n", layer.slow_because);
  }
  return text +
         fmt::format("{:<34} {:>10} {:>10} {:>11} {:>10}\n", "in all, of a sample", "",
                     model.parameter_size(), "",
                     human_bytes(std::accumulate(saved.begin(), saved.end(), std::int64_t{0})));
}

}  // namespace carousel
