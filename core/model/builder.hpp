// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Puts a model together layer by layer, with shapes, parameters, costs and what backward reads of
// each. Which layers a network has is its own builder's business.

#include <string>

#include "core/model/model.hpp"

namespace carousel {

/// Every function appends one layer, which reads what the layer before left unless from() says
/// otherwise. Shapes follow from the input; parameters and buffers have the names of PyTorch's
/// modules below `name`. Costs count multiply and add separately.
class ModelBuilder {
 public:
  /// A model of nothing yet, for samples of shape `input`.
  ModelBuilder(const std::string& name, const SampleShape& input, int classes);

  /// The next layer reads what `layer` left; -1 stands for the images.
  ModelBuilder& from(int layer);

  void flatten();
  /// torch.nn.Linear, of features or of every token
  void linear(const std::string& name, int features, const Initial& weight, const Initial& bias);
  void relu(const std::string& name);
  /// torch.nn.Dropout
  void dropout(const std::string& name, double probability);
  /// torch.nn.Conv2d without bias. Throws Error(usage) where nothing of the image would be left.
  void convolution(const std::string& name, int channels, const Window& window);
  /// torch.nn.BatchNorm2d
  void batch_norm(const std::string& name);
  /// torch.nn.MaxPool2d
  void max_pool(const std::string& name, const Window& window);
  /// torch.nn.AdaptiveAvgPool2d(1)
  void global_average_pool(const std::string& name);
  /// Adds what `shortcut` left to what the layer before left, in its place.
  void add(const std::string& name, int shortcut);
  /// Vision transformer, whose parameters' names are torchvision's: convolution `conv_proj` of
  /// square patches, `class_token` in front of them, `encoder.pos_embedding` added. It leaves
  /// tokens. Throws Error(usage) where patches do not fill the image.
  void patch_embedding(int features, int patch);
  /// torch.nn.LayerNorm of each token
  void layer_norm(const std::string& name);
  /// torch.nn.GELU, without approximation
  void gelu(const std::string& name);
  /// The middle of torch.nn.MultiheadAttention, without its two linear layers.
  void attention(const std::string& name, int heads);
  void first_token();
  void softmax_cross_entropy();

  /// The layer appended last; -1 when there is none.
  [[nodiscard]] int last() const { return static_cast<int>(model_.layers.size()) - 1; }
  /// The shape of what it left.
  [[nodiscard]] const SampleShape& shape() const;
  [[nodiscard]] const Model& model() const { return model_; }

 private:
  LayerSpec& append(const LayerKind& kind, const std::string& name);
  [[nodiscard]] LayerInput input_from(int layer) const;
  [[nodiscard]] SampleShape after(const LayerSpec& layer, int channels, const Window& window) const;
  /// Gradients of this many operands: the weights, and the input unless nothing before it learns.
  [[nodiscard]] int gradients() const { return model_.parameter_size() == 0 ? 1 : 2; }

  Model model_;
  int from_ = -1;
};

}  // namespace carousel
