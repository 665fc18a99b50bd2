// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/builder.hpp"

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

void ModelBuilder::linear(const std::string& name, int features, Initial weight, Initial bias) {
  const int operands = gradients();
  LayerSpec& layer = append(kind::Linear{}, name);
  const int in = layer.input().channels;
  layer.output = {features};
  layer.parameters = {{name + ".weight", {features, in}, weight, in},
                      {name + ".bias", {features}, bias, in}};
  const double product = 2.0 * in * features;
  layer.forward_flops = product + features;
  layer.backward_flops = operands * product + features;
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
                       Initial::kaiming_normal,
                       channels * area}};
  const double product = 2.0 * static_cast<double>(in * area * layer.output.size());
  layer.forward_flops = product;
  layer.backward_flops = operands * product;
  layer.saves_input = true;
}

void ModelBuilder::batch_norm(const std::string& name) {
  LayerSpec& layer = append(kind::BatchNorm{}, name);
  const std::int64_t channels = layer.input().channels;
  layer.parameters = {{name + ".weight", {channels}, Initial::ones},
                      {name + ".bias", {channels}, Initial::zeros}};
  layer.buffers = {{name + ".running_mean", {channels}, Initial::zeros, 1, false},
                   {name + ".running_var", {channels}, Initial::ones, 1, false}};
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

/// Backward needs the probabilities, which take the place of the logits.
void ModelBuilder::softmax_cross_entropy() {
  LayerSpec& layer = append(kind::SoftmaxCrossEntropy{}, "");
  layer.forward_flops = 5.0 * layer.input().channels;
  layer.backward_flops = 2.0 * layer.input().channels;
  layer.saves_output = true;
  layer.in_place = true;
}

}  // namespace carousel
