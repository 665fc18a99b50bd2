// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// From an image to the tokens of a vision transformer (Dosovitskiy et al. 2021, arXiv 2010.11929):
// a convolution whose windows are patches, a class token in front of them, and positions added.

#include <memory>

#include "core/engine/layer.hpp"

namespace carousel {

/// Parameters, as torchvision's: class_token [c], weight [c, in, patch, patch], bias [c], positions
/// [tokens, c].
class PatchEmbedding final : public Layer {
 public:
  /// The convolution without its bias, which leaves its outputs behind a place for the class token.
  PatchEmbedding(const LayerSpec& spec, std::unique_ptr<Layer> convolution);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  std::unique_ptr<Layer> convolution_;
  TensorFormat format_;
  std::int64_t weights_;  // numbers
};

}  // namespace carousel
