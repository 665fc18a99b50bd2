// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a network is: a chain of layer descriptions with shapes, named parameters and costs. Pure
// data for the planner and the engine; it computes nothing and knows no parallelism.

#include <cstdint>
#include <string>
#include <vector>

namespace carousel {

/// Shape of one sample, without the batch dimension: [c, h, w]. Features of a linear layer are
/// channels with h = w = 1.
struct SampleShape {
  int channels = 0;
  int height = 1;
  int width = 1;

  [[nodiscard]] std::int64_t size() const {
    return static_cast<std::int64_t>(channels) * height * width;
  }
  bool operator==(const SampleShape&) const = default;
};

enum class LayerKind : std::uint8_t {
  flatten,
  linear,
  relu,
  softmax_cross_entropy,
  convolution,
  batch_norm,
  max_pool,
  average_pool,
  add,
  dropout,
};

/// How a parameter starts, with f its fan. Kaiming (He et al. 2015, for ReLU): U(-b, b) with
/// b = sqrt(6 / f), or normal with variance 2 / f. Lecun: U(-b, b) with b = 1 / sqrt(f), which is
/// what torch.nn.Linear does.
enum class Initial : std::uint8_t { zeros, ones, kaiming_uniform, kaiming_normal, lecun_uniform };

/// One named tensor, as PyTorch's state_dict names and shapes it.
struct ParameterSpec {
  std::string name;                 // "0.weight"
  std::vector<std::int64_t> shape;  // [out, in] for a linear layer, [out, in, h, w] for convolution
  Initial initial = Initial::zeros;
  std::int64_t fan = 1;
  bool learned = true;  // not so batch norm's running statistics

  [[nodiscard]] std::int64_t size() const;
  /// Whether it scales or shifts features one by one, as biases and batch norm do: such parameters
  /// may be left out of weight decay.
  [[nodiscard]] bool is_per_feature() const { return shape.size() == 1; }
};

/// The square window of a convolution or a pooling, as PyTorch's arguments of these names.
struct Window {
  int kernel = 1;
  int stride = 1;
  int padding = 0;
  bool operator==(const Window&) const = default;
};

/// torch.nn.BatchNorm2d's arguments of these names, always at their defaults.
inline constexpr double batch_norm_epsilon = 1e-5;
inline constexpr double batch_norm_momentum = 0.1;

/// One layer. FLOPs count multiply and add separately and are per sample.
struct LayerSpec {
  LayerKind kind = LayerKind::flatten;
  std::string name;
  std::vector<int> inputs;  // layers whose outputs it reads, -1 the images; empty: the layer before
  SampleShape input;        // of every input
  SampleShape output;
  Window window;           // convolution, pooling
  double smoothing = 0;    // loss: share of the target that all classes have alike, in training
  double probability = 0;  // dropout: of a zero
  std::vector<ParameterSpec> parameters;
  std::vector<ParameterSpec> buffers;  // batch norm: running mean and variance
  double forward_flops = 0;
  double backward_flops = 0;
  bool saves_input = false;     // backward reads the layer's input
  bool saves_output = false;    // backward reads the layer's output
  bool in_place = false;        // the output takes the place of the first input
  std::int64_t saved_size = 0;  // numbers per micro-batch that forward leaves to backward besides

  [[nodiscard]] std::int64_t parameter_size() const;
  [[nodiscard]] std::int64_t buffer_size() const;
  /// Kind and name, for people.
  [[nodiscard]] std::string label() const;
};

/// A network for classification: layers in order, the last one is the loss.
struct Model {
  std::string name;
  SampleShape input;
  int classes = 0;
  std::vector<LayerSpec> layers;

  [[nodiscard]] std::int64_t parameter_size() const;
  [[nodiscard]] std::int64_t buffer_size() const;
};

/// Layers whose outputs layer l reads; -1 stands for the images.
[[nodiscard]] std::vector<int> input_layers(const Model& model, int l);

/// The tensor that every layer leaves behind, named after the layer that made it: a layer in place
/// leaves that of its first input, and -1 stands for the images.
[[nodiscard]] std::vector<int> tensors_of_layers(const Model& model);

/// [layer] whether some backward reads the tensor that the layer made.
[[nodiscard]] std::vector<bool> tensors_kept(const Model& model);

/// What a residual network begins with. ImageNet's: a 7x7 convolution of stride 2 and a max pooling
/// of stride 2. CIFAR's: a 3x3 convolution, for small images.
enum class Stem : std::uint8_t { cifar, imagenet };
[[nodiscard]] const char* to_string(Stem stem);

/// The `[model]` table of a deck.
struct ModelConfig {
  std::string name = "mlp";
  std::vector<int> widths = {};  // mlp: features of input, hidden layers and output
  double dropout = 0;            // mlp: probability of a zero behind every hidden layer
  int depth = 0;                 // resnet
  Stem stem = Stem::imagenet;    // resnet
};

/// What can be said without the data: throws Error(usage) when there is no such model.
void check_model(const ModelConfig& config);

/// Builds the description of the model a deck names for samples of shape `input`.
/// Throws Error(usage) when the configuration and the data do not fit together.
[[nodiscard]] Model build_model(const ModelConfig& config, const SampleShape& input, int classes);

/// Multi-layer perceptron: flatten, then linear, ReLU and, unless `dropout` is 0, dropout in turn,
/// linear, loss. Parameters are named as torchvision.ops.MLP(widths[0], widths[1:]) names them,
/// which drops logits, too.
[[nodiscard]] Model build_mlp(const std::vector<int>& widths, const SampleShape& input, int classes,
                              double dropout = 0);

/// Residual network with batch norm, named and initialised as torchvision.models.resnetDEPTH. Depth
/// 18, 34 (basic blocks) and 50 (bottlenecks, v1.5: the stride is on the 3x3) have either stem.
/// Depth 8, 20, 32 and 56 are the CIFAR family of He et al. 2016: three groups of 16, 32 and 64
/// channels, with a convolution in the shortcut where the shape changes; layer1 to layer3, CIFAR's
/// stem only. Throws Error(usage) for others, and for images that are too small.
[[nodiscard]] Model build_resnet(int depth, Stem stem, const SampleShape& input, int classes);
/// What build_resnet() refuses whatever the images are.
void check_resnet(int depth, Stem stem);

/// A table of the layers for people.
[[nodiscard]] std::string to_string(const Model& model);
[[nodiscard]] std::string to_string(const SampleShape& shape);
[[nodiscard]] const char* to_string(LayerKind kind);

}  // namespace carousel
