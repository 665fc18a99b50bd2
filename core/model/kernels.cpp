// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/kernels.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/model/fuse.hpp"
#include "core/model/vendor.hpp"
#include "core/model/workspace.hpp"

namespace carousel {
namespace {

template <class Kind>
bool is(const LayerSpec& layer) {
  return layer.is<Kind>();
}

/// Batch norm and ReLU in front of a layer that makes them on the way.
template <class Kind>
void read_normalised(std::span<const LayerSpec> run, LayerSpec& fused) {
  Kind kind = run.back().as<Kind>();
  kind.normalises = true;
  fused.kind = kind;
  fused.name = run.back().name;
}

/// Batch norm with what follows it.
void extend_norm(std::span<const LayerSpec> run, LayerSpec& fused) {
  fused.kind = kind::BatchNorm{.adds = run.size() == 3, .rectifies = true};
}

/// Of two that match a run the first one counts.
std::vector<Fusion> fusions(const KernelChoice& choice) {
  std::vector<Fusion> all;
  if (choice.recompute != Recompute::none) {
    all.push_back({.matches = {is<kind::BatchNorm>, is<kind::Relu>, is<kind::Convolution>},
                   .complete = read_normalised<kind::Convolution>,
                   .is_sole_reader = true});
  }
  if (choice.recompute != Recompute::none && choice.block != 0) {
    all.push_back({.matches = {is<kind::BatchNorm>, is<kind::Relu>, is<kind::MaxPool>},
                   .complete = read_normalised<kind::MaxPool>,
                   .is_sole_reader = true});
  }
  all.push_back(
      {.matches = {is<kind::BatchNorm>, is<kind::Add>, is<kind::Relu>}, .complete = extend_norm});
  all.push_back({.matches = {is<kind::BatchNorm>, is<kind::Relu>}, .complete = extend_norm});
  return all;
}

void complete(kind::Convolution& kind, LayerSpec& layer, const KernelChoice& choice) {
  const bool reads_images = layer.inputs.front().format.block == 1;
  const bool has_bias = layer.parameters.back().shape.size() == 1;
  kind.winograd = choice.winograd && choice.block != 0 && kind.window == Window{3, 1, 1} &&
                  !reads_images && !has_bias;
  layer.saves_input = true;
}

void complete(kind::BatchNorm& kind, LayerSpec& layer, const KernelChoice& /*choice*/) {
  layer.saves_input = true;
  layer.saves_output = kind.adds && kind.rectifies;
  layer.hands_gradient_on = kind.adds;
  layer.output_recomputable = true;
}

void complete(kind::MaxPool& kind, LayerSpec& layer, const KernelChoice& /*choice*/) {
  layer.saves_input = layer.saves_output = kind.normalises;
  layer.saved.push_back({"indices", {0, layer.output.size()}, true});
}

template <class Kind>
void complete(Kind& /*kind*/, LayerSpec& /*layer*/, const KernelChoice& /*choice*/) {}

/// What is left of a sample, without height and width, is in the same order with blocks and
/// without.
bool ends_blocks(const LayerSpec& layer) {
  return layer.output.height * layer.output.width == 1 &&
         (layer.is<kind::AveragePool>() || layer.is<kind::FirstToken>());
}

/// What reads images as files have them.
bool begins_blocks(const LayerSpec& layer) {
  return layer.is<kind::Convolution>() || layer.is<kind::PatchEmbedding>();
}

/// Channels of a layer that makes blocks, or features of a head.
int features_of(const LayerSpec& layer) {
  const auto* attention = std::get_if<kind::Attention>(&layer.kind);
  return layer.output.channels / (attention != nullptr ? attention->heads : 1);
}

/// What of a layer fills no blocks; empty where all is well.
std::string odd_features(const LayerSpec& layer, const KernelChoice& choice) {
  constexpr std::size_t columns = 30;
  constexpr int vector = 8;          // numbers of bf16 that tensor cores take at once
  constexpr int most_of_head = 128;  // that cuDNN's attention has kernels for
  const bool attends = layer.is<kind::Attention>();
  if (!attends && !begins_blocks(layer) && !layer.is<kind::Linear>()) return {};
  // In full numbers our own kernels attend.
  if (attends && choice.block == 0 && choice.type == DataType::full) return {};
  const int multiple = choice.block == 0 ? vector : choice.block;
  const int features = features_of(layer);
  const char* what = attends ? "features per head" : "channels";
  if (features % multiple != 0)
    return fmt::format("{} has {} {}, no multiple of {}", layer.label(columns), features, what,
                       multiple);
  if (attends && choice.block == 0 && features > most_of_head)
    return fmt::format("{} has {} {}, more than {}", layer.label(columns), features, what,
                       most_of_head);
  return {};
}

/// Its portable kernels read and write either type: of most, number by number in any order.
bool takes_either_type(const LayerSpec& layer) {
  return layer.is<kind::Relu>() || layer.is<kind::Add>() || layer.is<kind::Dropout>() ||
         layer.is<kind::Gelu>() || layer.is<kind::SoftmaxCrossEntropy>();
}

}  // namespace

const char* to_string(Recompute recompute) {
  constexpr std::array<const char*, 3> names = {"none", "cheap", "stage"};
  return names[static_cast<std::size_t>(recompute)];
}

LayerSpec with_blocks(LayerSpec layer, const KernelChoice& choice) {
  const int block = choice.block == 0 ? layer.output.channels : choice.block;
  if (!ends_blocks(layer)) layer.output_format.block = block;
  if (!layer.buffers.empty()) {
    const std::int64_t channel = 5 * std::int64_t{sizeof(real)};
    layer.saved = {{"statistics", {channel * layer.input().channels, 0}, true}};
  }
  std::visit([&](auto& kind) { complete(kind, layer, choice); }, layer.kind);
  if (choice.block != 0) {
    layer.workspace = blocked_workspace(layer, block);
  } else {
    choose_channels_last(layer);
    layer.native = layer.native || takes_either_type(layer);
  }
  return layer;
}

namespace {

/// Images are full numbers, also where a layer works in place on them.
void choose_types(Model& model, DataType type) {
  for (LayerSpec& layer : model.layers) {
    for (LayerInput& input : layer.inputs)
      input.format.type =
          input.layer < 0 ? DataType::full : model.layers[input.layer].output_format.type;
    layer.output_format.type = layer.in_place ? layer.inputs[0].format.type : type;
    layer.native = layer.native || takes_either_type(layer);
    for (ParameterSpec& parameter : layer.parameters)
      parameter.type = parameter.is_per_feature() ? DataType::full : type;
  }
}

Model choose_layers(Model model, const KernelChoice& choice) {
  model.makes_outputs_again = choice.recompute != Recompute::none;
  model.recomputes_stages = choice.recompute == Recompute::stage;
  if (choice.block == 1 || std::ranges::none_of(model.layers, begins_blocks)) return model;
  Model result = fuse(model, fusions(choice));
  for (LayerSpec& layer : result.layers) {
    for (LayerInput& input : layer.inputs) {
      if (input.layer >= 0) input.format = result.layers[input.layer].output_format;
    }
    const bool has_blocks = layer.inputs.front().format.block > 1;
    if (!has_blocks && !begins_blocks(layer)) continue;  // behind what ends them
    model.portable_because = odd_features(layer, choice);
    if (!model.portable_because.empty()) return model;
    layer = with_blocks(std::move(layer), choice);
  }
  return result;
}

}  // namespace

Model choose_kernels(Model model, const KernelChoice& choice) {
  KernelChoice chosen = choice;
  if (wants_channels_last(choice.vendor)) chosen.block = 0;
  Model result = choose_layers(std::move(model), chosen);
  choose_types(result, choice.type);
  for (LayerSpec& layer : result.layers) choose_vendor(layer, choice.vendor);
  return result;
}

}  // namespace carousel
