// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/builder.hpp"

#include <cmath>

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

LayerSpec& ModelBuilder::append(const LayerKind& kind, const std::string& name) {
  LayerSpec layer;
  layer.kind = kind;
  layer.name = name;
  layer.inputs = {input_from(from_)};
  layer.output = layer.input();
  model_.layers.push_back(std::move(layer));
  from_ = last();
  return model_.layers.back();
}

/// The shape behind a window that moves over the image.
SampleShape ModelBuilder::after(const LayerSpec& layer, int channels, const Window& window) const {
  const auto moves = [&](int size) {
    const int room = size + 2 * window.padding - window.kernel;
    if (room < 0)
      fail(ExitCode::usage, "data.file: images of {} are too small for {}: {} would leave nothing",
           to_string(model_.input), model_.name, layer.label());
    return room / window.stride + 1;
  };
  return {channels, moves(layer.input().height), moves(layer.input().width)};
}

void ModelBuilder::flatten() {
  LayerSpec& layer = append(kind::Flatten{}, "");
  layer.output = {static_cast<int>(layer.input().size())};
  layer.in_place = true;
}

void ModelBuilder::linear(const std::string& name, int features, const Initial& weight,
                          const Initial& bias) {
  const int operands = gradients();
  LayerSpec& layer = append(kind::Linear{}, name);
  const int in = layer.input().channels;
  layer.output.channels = features;
  // torch.nn.MultiheadAttention has a linear layer that is no module of its own.
  const char* separator = name.ends_with("in_proj") ? "_" : ".";
  layer.parameters = {{name + separator + "weight", {features, in}, weight},
                      {name + separator + "bias", {features}, bias}};
  const auto outputs = static_cast<double>(layer.output.size());
  const double product = 2.0 * in * outputs;
  layer.forward_flops = product + outputs;
  layer.backward_flops = operands * product + outputs;
  layer.saves_input = true;
}

void ModelBuilder::relu(const std::string& name) {
  LayerSpec& layer = append(kind::Relu{}, name);
  layer.forward_flops = layer.backward_flops = static_cast<double>(layer.input().size());
  layer.saves_output = true;
  layer.output_recomputable = true;
  layer.in_place = true;
}

void ModelBuilder::dropout(const std::string& name, double probability) {
  LayerSpec& layer = append(kind::Dropout{probability}, name);
  layer.forward_flops = layer.backward_flops = static_cast<double>(layer.input().size());
  layer.output_recomputable = true;
  layer.in_place = true;
}

/// He et al. 2015: the variance of the weights keeps that of the gradients, hence the fan of the
/// output.
void ModelBuilder::convolution(const std::string& name, int channels, const Window& window) {
  const int operands = gradients();
  LayerSpec& layer = append(kind::Convolution{window}, name);
  const std::int64_t in = layer.input().channels;
  const std::int64_t area = std::int64_t{window.kernel} * window.kernel;
  layer.output = after(layer, channels, window);
  layer.parameters = {{name + ".weight",
                       {channels, in, window.kernel, window.kernel},
                       kaiming_normal(channels * area)}};
  const double product = 2.0 * static_cast<double>(in * area * layer.output.size());
  layer.forward_flops = product;
  layer.backward_flops = operands * product;
  layer.saves_input = true;
}

void ModelBuilder::batch_norm(const std::string& name) {
  LayerSpec& layer = append(kind::BatchNorm{}, name);
  const std::int64_t channels = layer.input().channels;
  layer.parameters = {{name + ".weight", {channels}, ones()},
                      {name + ".bias", {channels}, zeros()}};
  layer.buffers = {{name + ".running_mean", {channels}, zeros(), false},
                   {name + ".running_var", {channels}, ones(), false}};
  // Per pixel; forward: mean 1, variance 3, result 3; backward: two sums 4, result 5.
  const auto size = static_cast<double>(layer.input().size());
  layer.forward_flops = 7 * size;
  layer.backward_flops = 9 * size;
  layer.saves_input = true;
  layer.saved = {{"statistics", {3 * channels * std::int64_t{sizeof(real)}, 0}, true}};
  layer.output_recomputable = true;
}

void ModelBuilder::max_pool(const std::string& name, const Window& window) {
  LayerSpec& layer = append(kind::MaxPool{window}, name);
  layer.output = after(layer, layer.input().channels, window);
  const double comparisons = 1.0 * window.kernel * window.kernel;
  layer.forward_flops = layer.backward_flops =
      comparisons * static_cast<double>(layer.output.size());
  layer.saves_input = true;
}

void ModelBuilder::global_average_pool(const std::string& name) {
  LayerSpec& layer = append(kind::AveragePool{Window{.kernel = 0}}, name);
  layer.output = {layer.input().channels};
  layer.forward_flops = layer.backward_flops = static_cast<double>(layer.input().size());
}

void ModelBuilder::add(const std::string& name, int shortcut) {
  LayerSpec& layer = append(kind::Add{}, name);
  CAROUSEL_CHECK(model_.layers[shortcut].output == layer.input(), "{}: {} is added to {}", name,
                 to_string(model_.layers[shortcut].output), to_string(layer.input()));
  layer.inputs.push_back(input_from(shortcut));
  layer.hands_gradient_on = true;
  layer.forward_flops = layer.backward_flops = static_cast<double>(layer.input().size());
  layer.output_recomputable = true;
  layer.in_place = true;
}

void ModelBuilder::patch_embedding(int features, int patch) {
  LayerSpec& layer = append(kind::PatchEmbedding{{patch, patch, 0}}, "conv_proj");
  const SampleShape& image = layer.input();
  if (image.height % patch != 0 || image.width % patch != 0)
    fail(ExitCode::usage, "data.file: images of {} are not made of whole patches; model.patch = {}",
         to_string(image), patch);
  const int patches = (image.height / patch) * (image.width / patch);
  const std::int64_t in = image.channels;
  const std::int64_t taps = in * patch * patch;
  layer.output = {features, patches + 1, 1};
  layer.parameters = {{"class_token", {1, 1, features}, zeros()},
                      {"conv_proj.weight",
                       {features, in, patch, patch},
                       normal(std::sqrt(1 / static_cast<double>(taps)))},
                      {"conv_proj.bias", {features}, zeros()},
                      {"encoder.pos_embedding", {1, patches + 1, features}, normal(0.02)}};
  const double product = 2.0 * static_cast<double>(taps) * patches * features;
  const auto outputs = static_cast<double>(layer.output.size());
  layer.forward_flops = product + 2 * outputs;
  layer.backward_flops = product + 2 * outputs;
  layer.saves_input = true;
}

void ModelBuilder::layer_norm(const std::string& name) {
  LayerSpec& layer = append(kind::LayerNorm{}, name);
  const SampleShape& shape = layer.input();
  layer.parameters = {{name + ".weight", {shape.channels}, ones()},
                      {name + ".bias", {shape.channels}, zeros()}};
  // Per number; forward: mean 1, variance 3, result 4; backward: four sums 6, result 6.
  const auto size = static_cast<double>(shape.size());
  layer.forward_flops = 8 * size;
  layer.backward_flops = 12 * size;
  layer.saves_input = true;
  layer.saved = {
      {"statistics", {0, 2 * std::int64_t{shape.height} * std::int64_t{sizeof(real)}}, true}};
  layer.output_recomputable = true;
}

void ModelBuilder::gelu(const std::string& name) {
  LayerSpec& layer = append(kind::Gelu{}, name);
  // The error function and, backward, the normal density are about ten operations each.
  const auto size = static_cast<double>(layer.input().size());
  layer.forward_flops = 20 * size;
  layer.backward_flops = 25 * size;
  layer.saves_input = true;
  layer.output_recomputable = true;
}

/// Products of rows and columns of tokens: two forward; backward the scores again and four more.
void ModelBuilder::attention(const std::string& name, int heads) {
  LayerSpec& layer = append(kind::Attention{heads}, name);
  const SampleShape& shape = layer.input();
  CAROUSEL_CHECK(shape.channels % (3 * heads) == 0, "{}: {} heads of {}", name, heads,
                 to_string(shape));
  layer.output.channels = shape.channels / 3;
  const double product = 2.0 * shape.height * static_cast<double>(layer.output.size());
  layer.forward_flops = 2 * product;
  layer.backward_flops = 5 * product;
  layer.saves_input = true;
  const std::int64_t queries = std::int64_t{heads} * shape.height;
  layer.workspace = {{0, 2 * queries * std::int64_t{sizeof(real)}}};
}

void ModelBuilder::first_token() {
  LayerSpec& layer = append(kind::FirstToken{}, "");
  layer.output = {layer.input().channels};
}

/// Backward needs the logits, which stay where they are.
void ModelBuilder::softmax_cross_entropy() {
  LayerSpec& layer = append(kind::SoftmaxCrossEntropy{}, "");
  layer.forward_flops = 5.0 * layer.input().channels;
  layer.backward_flops = 2.0 * layer.input().channels;
  layer.saves_output = true;
  layer.in_place = true;
}

}  // namespace carousel
