// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a network is: layer descriptions in order, and the models that decks name. Pure data for the
// planner and the engine; it computes nothing and knows no parallelism.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/words.hpp"
#include "core/model/layer_list.hpp"
#include "core/model/layer_spec.hpp"
#include "core/model/task.hpp"

namespace carousel {

template <class Struct>
struct Row;

/// A network: layers in order, the last one is the loss.
struct Model {
  std::string name;
  SampleShape input;
  TargetSpec target;
  std::vector<LayerSpec> layers;
  bool makes_outputs_again = false;  // see tensors_made_again()
  bool recomputes_stages = false;    // backward runs the forward of its stage again, whose
                                   // activations are not kept; but for what leaves the stage (Chen
                                   // et al. 2016, arXiv 1604.06174)

  /// Of the loss; none of a network without one.
  [[nodiscard]] std::span<const Metric* const> metrics() const;
  [[nodiscard]] std::int64_t parameter_size() const;
  [[nodiscard]] std::int64_t learned_size() const;
  /// ", 4,160 of them frozen"; nothing where all learn.
  [[nodiscard]] std::string told_frozen() const;
  [[nodiscard]] std::int64_t buffer_size() const;
};

/// Refuses, as a broken invariant, a layer that reads a tensor in another shape or format than the
/// one that was left.
void check_tensors(const Model& model);

/// The tensor that every layer leaves behind, named after the layer that made it: a layer in place
/// leaves that of its first input, and -1 stands for the images.
[[nodiscard]] std::vector<int> tensors_of_layers(const Model& model);
/// [layer] whether it learns, or something that its inputs were made by: backward is for these
/// alone.
[[nodiscard]] std::vector<bool> learning_layers(const Model& model);

/// [layer] whether some backward reads the tensor that the layer made, though it need not be kept:
/// element by element it can be made again from the layer's input, which is kept anyway. None where
/// the model does not ask for it.
[[nodiscard]] std::vector<bool> tensors_made_again(const Model& model);

/// [layer] whether some backward reads the tensor that the layer made, and it is kept for that.
[[nodiscard]] std::vector<bool> tensors_kept(const Model& model);

/// [layer] bytes that forward leaves to backward for each sample: the tensor that the layer made,
/// if some backward reads it, and what the layer saves besides.
[[nodiscard]] std::vector<std::int64_t> saved_per_sample(const Model& model);

/// What a residual network begins with. ImageNet's: a 7x7 convolution of stride 2 and a max pooling
/// of stride 2. CIFAR's: a 3x3 convolution, for small images.
enum class Stem : std::uint8_t { cifar, imagenet };
constexpr auto words_of(Stem) {
  return all_words<Stem>("cifar", "imagenet");
}

/// What normalises the images of a residual network.
enum class Norm : std::uint8_t { batch, group };
constexpr auto words_of(Norm) {
  return all_words<Norm>("batch", "group");
}

/// The `[model]` table of a deck.
struct ModelConfig {
  std::string name = "mlp";
  DeckValue let = {};  // layers: see LayerList
  DeckValue layers = {};
  DeckValue blocks = {};
  std::string file = {};         // another file that has them
  std::string layers_file = {};  // where they are written; no key
  std::vector<int> widths = {};  // mlp: features of input, hidden layers and output
  double dropout = 0;            // mlp, vit: probability of a zero
  int depth = 0;                 // resnet: layers; vit: blocks
  Stem stem = Stem::imagenet;    // resnet
  Norm norm = Norm::batch;       // resnet
  int groups = 32;               // resnet: of group norms
  int patch = 16;                // vit: side of a patch, in pixels
  int width = 768;               // vit: features of a token
  int heads = 12;                // vit
  int mlp = 0;                   // vit: hidden features of a block; 0: four times the width

  [[nodiscard]] static std::vector<Row<ModelConfig>> rows();
};

/// What can be said without the data: throws Error(usage) when there is no such model.
void check_model(const ModelConfig& config);

/// Builds the description of the model a deck names for samples of shape `input`, with the loss of
/// a task. Throws Error(usage) when the configuration and the data do not fit together.
[[nodiscard]] Model build_model(const ModelConfig& config, const SampleShape& input,
                                const TargetSpec& target, const TaskConfig& task = {});

/// The network that a deck lists. Error(usage) that begins with the place of the layer where it
/// does not fit together.
[[nodiscard]] Model build_listed(const ModelConfig& config, const SampleShape& input,
                                 const TargetSpec& target, const TaskConfig& task = {});
/// What build_listed() refuses whatever the images are.
void check_listed(const ModelConfig& config);
/// The layers of a network, but for its loss, as a deck would list them.
[[nodiscard]] DeckValue as_list(const Model& model);

/// Multi-layer perceptron: flatten, then linear, ReLU and, unless `dropout` is 0, dropout in turn,
/// linear, loss. Parameters are named as torchvision.ops.MLP(widths[0], widths[1:]) names them,
/// which drops logits, too.
[[nodiscard]] Model build_mlp(const std::vector<int>& widths, const SampleShape& input,
                              const TargetSpec& target, double dropout = 0,
                              const TaskConfig& task = {});

/// Residual network, named and initialised as torchvision.models.resnetDEPTH. Depth
/// 18, 34 (basic blocks) and 50 (bottlenecks, v1.5: the stride is on the 3x3) have either stem.
/// Depth 8, 20, 32 and 56 are the CIFAR family of He et al. 2016: three groups of 16, 32 and 64
/// channels, with a convolution in the shortcut where the shape changes; layer1 to layer3, CIFAR's
/// stem only. With `groups` that are not 0, its norms are group norms, as with torchvision's
/// norm_layer. Throws Error(usage) for others, for images that are too small, and for groups that
/// do not divide the channels.
[[nodiscard]] Model build_resnet(int depth, Stem stem, const SampleShape& input,
                                 const TargetSpec& target, int groups = 0,
                                 const TaskConfig& task = {});
/// What build_resnet() refuses whatever the images are.
void check_resnet(int depth, Stem stem, int groups = 0);

/// Vision transformer, named and initialised as torchvision.models.VisionTransformer: vit_b_16 is
/// patch 16, width 768, depth 12, heads 12; vit_b_32 is patch 32; vit_l_16 is width 1024, depth 24,
/// heads 16. The class token alone meets the last norm. Throws Error(usage) where patches do not
/// fill the image.
[[nodiscard]] Model build_vit(const ModelConfig& config, const SampleShape& input,
                              const TargetSpec& target, const TaskConfig& task = {});
/// What build_vit() refuses whatever the images are.
void check_vit(const ModelConfig& config);

/// A table of the layers for people.
[[nodiscard]] std::string to_string(const Model& model);

}  // namespace carousel
