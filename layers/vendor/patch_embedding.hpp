// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The first layer of a vision transformer: patches of images, gathered into rows, times weights by
// cuBLASLt, behind a class token, and positions added to all; features lie side by side.

#include "core/engine/layer.hpp"
#include "layers/patch_embedding/op.hpp"
#include "layers/vendor/row_products.hpp"

namespace carousel::vendor {

/// Parameters, as torchvision's: class_token [c], weight [c, in, patch, patch], bias [c], positions
/// [tokens, c].
class PatchEmbedding final : public Layer {
 public:
  PatchEmbedding(const LayerSpec& spec, int samples, const Engine& engine);

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  /// Bytes, or of gradients numbers, in front of each parameter.
  struct Places {
    std::int64_t weight, bias, positions;
  };

  LayerSpec spec_;
  DataType type_;
  int patches_;  // of an image
  std::span<std::byte> workspace_;
  PatchMemory memory_;
  Places stored_ = {};
  Places gradients_ = {};
  RowProducts products_;
};

}  // namespace carousel::vendor
